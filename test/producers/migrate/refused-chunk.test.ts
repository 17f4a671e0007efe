// What a run says of a chunk that was refused as a whole.
import { expect, it } from 'vitest'
import { hopelessReason, refusedChunk } from '../../../producers/migrate/refused-chunk.ts'
import type { Result } from '../../../src/job/answer/result.ts'

const refused = (field: string, code: string) =>
  refusedChunk(3, { error: { details: { [field]: { code, message: 'No.' } } } } as unknown as Result, { startedAt: 0 })

it.each(['on_conflict', 'input_sha256'])('a policy that workers do not know asks for newer workers: %s', member => {
  const { message } = refused(`body.request.policy.${member}`, 'field_value')
  expect(message).toContain('Chunk 3 was refused')
  expect(message).toContain('upgraded first')
})

it('records that a worker counted otherwise ask for newer workers, which know their form', () => {
  expect(refused('body.request.block', 'block_records').message).toContain('upgraded first')
})

it('another wrong value asks for a correction', () => {
  expect(refused('body.request.chunk', 'field_range').message).toContain('Correct that')
})

it('a first chunk whose cards were all encrypted too long ago ends the run, unless some made tokens in columns', () => {
  const stale = { line: 3, outcome: 'REJECTED', code: 400, reason: 'capture_time_stale' }
  const result = { records: [stale, stale] } as unknown as Result
  expect(hopelessReason(result)?.message).toContain('more than 15 minutes ago')
  expect(hopelessReason({ ...result, columns: { line: [2], others: [0, 2] } } as unknown as Result)).toBeUndefined()
  expect(hopelessReason({ records: [stale, { ...stale, reason: 'pan_format' }] } as unknown as Result)).toBeUndefined()
})
