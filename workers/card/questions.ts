// Answers what the line asks about the cards of a job.
import type { CardQuestions } from '../line/cards.ts'
import { storedAnswerRefusal } from './answer-entities.ts'
import { isNamedAfterItsCard, withoutOwnNumber } from './own-number.ts'
import { contentDigest, isSameContent } from './same-request.ts'
import { storedAnswer } from './stored-answer.ts'

export const CARD_QUESTIONS: CardQuestions = {
  withoutOwnNumber,
  isNamedAfterItsCard,
  contentDigest,
  isSameContent,
  storedAnswerRefusal,
  storedAnswer,
}
