// Refusals by workers name the fields as the HTTP caller knows them.
import { expect, it } from 'vitest'
import { answerOf } from '../../../../producers/gateway/operations/write.ts'

const answered = (field: string, code: string) =>
  answerOf({
    code: 400,
    error: {
      code: 400,
      message: 'm',
      details: { [field]: { message: 'm', code } },
      timestamp: 1,
      reversal_status: 'NONE',
    },
  } as Parameters<typeof answerOf>[0])

it.each([
  ['body.on_file', 'body'],
  ['body.on_file.card_id', 'body.card_id'],
  ['body.id', 'params.id'],
  ['body.on_files', 'body.on_files'],
])('a fault of %s is one of %s', (field, name) => {
  expect(answered(field, 'reference_pan')).toMatchObject({ declined: { status: 400, fields: [{ field: name }] } })
})
