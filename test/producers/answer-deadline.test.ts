// How long a run waits for answers.
import { expect, it } from 'vitest'
import { openAnswerDeadline } from '../../producers/answer-deadline.ts'
import { until } from '../support/until.ts'

function open(given: { finishMs?: number; giveUpAfterMs?: number } = {}) {
  const controller = new AbortController()
  const said = { over: 0, lines: [] as string[] }
  const answerDeadline = openAnswerDeadline({
    stop: controller.signal,
    onEnd: () => {
      said.over += 1
    },
    tell: line => said.lines.push(line),
    ...given,
  })
  return { controller, said, answerDeadline }
}

it('is over once what is in flight was awaited for long enough after the stop', async () => {
  const { controller, said } = open({ finishMs: 20 })
  controller.abort()
  await until(() => said.over)
  expect(said).toEqual({ over: 1, lines: [] })
})

it('is over after a silence, and says so once', async () => {
  const { said, answerDeadline } = open({ giveUpAfterMs: 20 })
  answerDeadline.sent()
  answerDeadline.sent()
  await until(() => said.over)
  answerDeadline.answered()
  answerDeadline.sent()
  expect(said).toEqual({ over: 1, lines: ['no answer came for 0.02 s (--give-up-after)'] })
})

it('has no end while nothing is awaited, and counts anew from each answer', async () => {
  const { said, answerDeadline } = open({ giveUpAfterMs: 150 })
  const sent = Promise.withResolvers<void>()
  const other = open({ giveUpAfterMs: 300 })
  other.answerDeadline.sent()
  answerDeadline.watch(sent.promise)
  sent.resolve()
  await until(() => other.said.over)
  expect(said.over).toBe(0)
  answerDeadline.sent()
  await until(() => said.over)
})

it('has no end once it is closed', async () => {
  const { controller, said, answerDeadline } = open({ finishMs: 10, giveUpAfterMs: 10 })
  const other = open({ finishMs: 50 })
  answerDeadline.sent()
  controller.abort()
  other.controller.abort()
  answerDeadline.close()
  await until(() => other.said.over)
  expect(said.over).toBe(0)
})
