// A failure travels as its reasons: the error body of a result tells them, and no reader reads its texts.
import { expect, it } from 'vitest'
import { TOKEN_ERRORS } from '../../producers/gateway/error-bodies.ts'
import { answerOf } from '../../producers/gateway/operations/write.ts'
import { REASONS, type Reason, refuse } from '../../src/errors.ts'
import { failureFor, failureIn, failureOf, problemOf, reasonIn, reasonsIn } from '../../src/job/problem.ts'

const REASON_WORDS = Object.keys(REASONS) as Reason[]

it.each(REASON_WORDS)('%s comes back from an error body as it went in', reason => {
  const failure = failureOf({ ...refuse(reason, 'body.a'), also: [{ field: 'query.b', reason: 'field_unknown' }] })
  const told = failureIn(JSON.parse(JSON.stringify(problemOf(failure, 1))))
  // The error body of a 500 names no fields, but where the sender can do something about it.
  const isTold = failure.status !== 500 || /_unproved$/.test(reason)
  expect(told).toEqual(isTold ? failure : { ...failure, fields: [] })
})

it.each(['NONE', 'REQUIRED', 'COMPLETED'] as const)('the reversal status %s comes back', reversalStatus => {
  const failure = failureFor('pan_luhn', 'body.encrypted_card', reversalStatus)
  expect(failureIn(problemOf(failure, 1))).toEqual(failure)
})

it.each(['pan_luhn', 'token_not_found', 'role_missing'] as const)('%s gets its text from who shows it', reason => {
  const error = problemOf(failureFor(reason, 'body.on_file.card_id'), 1)
  const spoilt = { ...error, message: 'x', details: { 'body.on_file.card_id': { message: 'spoilt', code: reason } } }
  const written = answerOf({ code: error.code, error: spoilt })
  if (!('declined' in written)) throw new Error('an error declines')
  expect(TOKEN_ERRORS.render(written.declined, 2)).toEqual({
    ...error,
    details: { 'body.card_id': { message: REASONS[reason].text, code: reason } },
    timestamp: 2,
  })
})

it.each([
  ['a text', 'no'],
  ['null', null],
  ['a body without a status', { details: { 'body.a': { code: 'pan_luhn' } } }],
])('%s in place of an error body is a failure of which nobody knows what is to be undone', (_, error) => {
  expect(failureIn(error)).toEqual(failureFor('internal', 'body', 'REQUIRED'))
})

it('no more than 50 reasons are read, and the first of none is internal', () => {
  const details = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`body.f${i}`, { code: 'field_unknown' }]))
  expect(reasonsIn({ details })).toHaveLength(50)
  expect(reasonIn({ details }).field).toBe('body.f0')
  expect(reasonIn(undefined)).toEqual({ field: 'body', reason: 'internal' })
})
