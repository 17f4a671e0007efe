// What the line itself gets. A handler gets no other handlers.
import type { Deps } from '../deps.ts'
import type { CardQuestions } from './cards.ts'
import type { Handlers } from './handlers.ts'

export interface LineDeps extends Deps {
  handlers: Handlers
  cards: CardQuestions
}
