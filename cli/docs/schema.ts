// The contract in zod as JSON Schema (2020-12), one document per shape. Rules that a schema can't express (no control
// characters, well-formed Unicode, limits in bytes) are described in words; only the zod schema decides.
import { z } from 'zod'
import { Countersignature } from '../../producers/pack/countersignature.ts'
import { Pack } from '../../producers/pack/pack.ts'
import { Profile } from '../../producers/rows/profile/profile.ts'
import { CreatedColumns } from '../../src/job/answer/created-columns.ts'
import { LiveKeys } from '../../src/job/answer/live-keys.ts'
import { Result, ResultData, ResultEvent } from '../../src/job/answer/result.ts'
import { setOf } from '../../src/job/answer/result-set.ts'
import { RECORD_KINDS, type RecordKind } from '../../src/job/catalogue.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import { annotate, type JsonSchema } from '../../src/job/describe/annotate.ts'
import { FIELD_NOTES } from '../../src/job/describe/field-notes.ts'
import { askedOf } from '../../src/job/envelope/digest.ts'
import { JobData } from '../../src/job/envelope/envelope.ts'
import { RecordColumns } from '../../src/job/record-columns.ts'
import { SchemeToken } from '../../src/job/scheme-token.ts'
import { RECORD_REQUESTS, RecordHead } from '../../src/job/token-batch.ts'
import { ANSWERS, CLIENT, JWS, RESULTS } from './golden-result-set.ts'

const TEXTS = 'Texts are well-formed Unicode without control characters. Unknown keys are refused.'

/** A result of a kind that this release knows. */
const KnownResult = Result.extend({ kind: z.enum(CATALOGUE.kinds) })

/** The schemas by the name of their document. */
export function schemas(): Record<string, object> {
  const requests = CATALOGUE.kinds.map(kind => {
    const { request, description } = CATALOGUE.entry(kind)
    return [kind, annotated(kind, describe(request, `request of ${kind}`, `${description} ${TEXTS}`))]
  })
  return {
    ...Object.fromEntries(requests),
    job: describe(JobData, 'job', 'Data of a job: the signed envelope, and the block of a batch (compact JWE).'),
    envelope: describe(
      CATALOGUE.claims,
      'envelope',
      `Payload of the JWS of a job, header typ tokenmill-job+jwt. ${TEXTS}`,
    ),
    record: describe(recordSchema(), 'record of a batch', 'One line of the NDJSON inside a block, at most 64 KiB.'),
    'record-columns': {
      ...describe(
        RecordColumns,
        'records in columns',
        'The first line of a block whose protected header has form columns: canonical JSON without blanks, its members in this order. One line for each of the other records follows, as in a block of rows. Columns of a single record are empty: it is one of the others.',
      ),
      examples: [EXAMPLE],
    },
    'created-columns': {
      ...describe(
        CreatedColumns,
        'columns of a result',
        'The member columns of the result of a chunk, for a sender whose envelope had result_columns, in a delivery whose JWS has the header typ tokenmill-result-columns+jwt: the records that made a token of their card, as arrays of what a record of records says of them, without blanks and with the members in this order. The outcome of each is CREATED, its code 200. Values of the same place belong to the same record; an array has one value if its values are all the same. An empty text is no value. records has the other records; others names their places in the chunk, from 0.',
      ),
      examples: [CREATED_EXAMPLE],
    },
    delivery: describe(
      ResultData,
      'delivery',
      'Data of a job on a results queue: a text and the signature of its digest.',
    ),
    result: {
      ...describe(
        KnownResult,
        'result',
        'The body of a delivery that answers a job. answers is SHA-256, base64url, of the canonical JSON (RFC 8785) of {kind, request} as the envelope has them; in the request of a transaction-batch the values of transactions and columns are replaced by SHA-256, base64url, of their JSON. It is absent if the request was refused for its form, and of a later revision when the digest is no longer stored. x-answers has examples: text is what is hashed.',
      ),
      'x-answers': ANSWERS.map(answersOf),
    },
    'result-set': {
      ...describe(
        setOf(KnownResult),
        'result set',
        `The body of a delivery that answers several jobs, whose envelopes had result_sets: the texts of the results as one JSON array. Header of its JWS: typ tokenmill-result-set+jwt; payload: {aud, results, sha256}, where results is their number and sha256 the digest of the body. x-delivery is the example as a delivery to the client ${CLIENT}, signed by x-key.`,
      ),
      examples: [RESULTS],
      'x-delivery': { body: JSON.stringify(RESULTS), jws: JWS },
      'x-key': GOLDEN_KEY,
    },
    'live-keys': describe(
      LiveKeys,
      'list of live keys',
      'Payload of the JWS under the Redis key PREFIX:live-keys, header typ tokenmill-live-keys+jwt. Later releases may add members.',
    ),
    profile: describe(
      Profile,
      'profile of a file',
      'How to read the file of a provider (docs/profiles/README.md). Unknown members are refused.',
    ),
    pack: describe(
      Pack,
      'sign-off pack of a migration',
      'NAME.pack.json, which `tokenmill manifest pack` writes in canonical order and signs (docs/sign-off.md).',
    ),
    countersignature: describe(
      Countersignature,
      'signature of the counterparty',
      'NAME.pack.countersigned.json: the OpenPGP signature over a sign-off pack, with the key that made it.',
    ),
    event: describe(ResultEvent, 'event', 'The body of a delivery that answers no job.'),
  }
}

function answersOf({ kind, request }: (typeof ANSWERS)[number]): object {
  const asked = askedOf(kind, request)
  return {
    kind,
    request,
    text: asked.text(),
    answers: asked.digest()?.toString('base64url'),
  }
}

/** Its private half is the 32 bytes 0x07. */
const GOLDEN_KEY = {
  kty: 'OKP',
  crv: 'Ed25519',
  alg: 'EdDSA',
  kid: 'golden',
  x: '6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw',
}

/** Test numbers. A test holds the text of the whole block and its digest against it. */
const EXAMPLE: RecordColumns = {
  line: [2, 4],
  reference: ['cust-1', ''],
  cardNumber: ['4111110000000021', '4111110000000039'],
  expiryMonth: [1, 12],
  expiryYear: [2031, 2032],
  cardholderName: ['ANNA MÜLLER', ''],
  others: [1],
}

/** A test holds its text and digest against what a worker makes. */
const CREATED_EXAMPLE: CreatedColumns = {
  line: [2, 5],
  reuse_token: 't014D2PF2DBSQQG28T5CY4TQKFFt014D2PF2DBSQQG28T5CY4TQKFF',
  bin: ['411111'],
  last_four: '0021,0039',
  expiry_month: [12],
  expiry_year: [2031, 2032],
  brand: ['VISA', ''],
  reference_outcome: [''],
  others: [1],
}

function recordSchema(): z.ZodType {
  const schemas = { ...RECORD_REQUESTS, 'scheme-token': SchemeToken } satisfies Record<RecordKind, z.ZodType>
  const requests = RECORD_KINDS.map(kind => schemas[kind])
  return RecordHead.extend({ request: z.union(requests as unknown as [z.ZodType, ...z.ZodType[]]).optional() })
}

/** The fields of these requests mean the same as over HTTP, so their notes are shared. */
const NOTED: ReadonlySet<string> = new Set(RECORD_KINDS)

function annotated(kind: string, schema: JsonSchema): JsonSchema {
  return NOTED.has(kind) ? annotate(schema, [kind], FIELD_NOTES) : schema
}

function describe(schema: z.ZodType, title: string, description: string): JsonSchema {
  const { $schema, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    target: 'draft-2020-12',
    unrepresentable: 'throw',
  })
  return { $schema, title: `tokenmill: ${title}`, description, ...rest }
}
