// The contract in zod as JSON Schema (2020-12), one document per shape. What a schema can't say (no control
// characters, well-formed Unicode, bounds in bytes) is said in words; the zod schema stays the judge.
import { z } from 'zod'
import { CATALOGUE, KINDS, type Kind, RECORD_KINDS } from '../../src/job/catalogue.ts'
import { Claims, JobData } from '../../src/job/envelope/envelope.ts'
import { Result, ResultData, ResultEvent } from '../../src/job/result.ts'
import { RECORD_REQUESTS, RecordHead } from '../../src/job/token-batch.ts'

export const REQUEST_TEXTS = {
  'token-create': 'Creates a token of a card, or updates the one that the card has in its scope.',
  'token-update': 'Changes the data of a token, or puts another card behind it.',
  'token-lifecycle': 'Suspends, activates or deletes a token.',
  'scheme-token': 'Activates, suspends or deletes the scheme token of a token.',
  'token-batch': 'One chunk of a batch; its records travel in the block of the job.',
  'transaction-batch': 'One chunk of ledger transactions.',
  report: 'Asks for a report to be generated.',
  reversal: 'Undoes what one envelope did. System clients only.',
} as const satisfies Record<Kind, string>

const TEXTS = 'Texts are well-formed Unicode without control characters. Unknown keys are refused.'

/** Name of the document → schema. */
export function schemas(): Record<string, object> {
  const requests = KINDS.map(kind => [
    kind,
    describe(CATALOGUE[kind].request, `request of ${kind}`, `${REQUEST_TEXTS[kind]} ${TEXTS}`),
  ])
  return {
    ...Object.fromEntries(requests),
    job: describe(JobData, 'job', 'Data of a job: the signed envelope, and the block of a batch (compact JWE).'),
    envelope: describe(Claims, 'envelope', `Payload of the JWS of a job, header typ tokenmill-job+jwt. ${TEXTS}`),
    record: describe(recordSchema(), 'record of a batch', 'One line of the NDJSON inside a block, at most 64 KiB.'),
    delivery: describe(
      ResultData,
      'delivery',
      'Data of a job on a results queue: a text and the signature of its digest.',
    ),
    result: describe(Result, 'result', 'The body of a delivery that answers a job.'),
    event: describe(ResultEvent, 'event', 'The body of a delivery that nobody asked for.'),
  }
}

function recordSchema(): z.ZodType {
  const requests = RECORD_KINDS.map(kind => RECORD_REQUESTS[kind])
  return RecordHead.extend({ request: z.union(requests as unknown as [z.ZodType, ...z.ZodType[]]).optional() })
}

function describe(schema: z.ZodType, title: string, description: string): object {
  const { $schema, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    target: 'draft-2020-12',
    unrepresentable: 'throw',
  })
  return { $schema, title: `tokenmill: ${title}`, description, ...rest }
}
