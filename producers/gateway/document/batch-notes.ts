// Texts of the OpenAPI document about batches and capture keys: properties and examples.
import type { Notes } from '../../../src/job/describe/annotate.ts'
import { json, type OperationNotes } from './notes.ts'
import { ACCEPTED_AT, ALIAS, ENTITY, REUSE_TOKEN, SCOPE } from './samples.ts'

export const BATCH_PROPERTIES: Notes = {
  batch_id: 'Id of the batch, unique for the client: 1 to 64 letters, digits, `_` and `-`.',
  kind: 'What each record of the batch asks for; `transaction`: the records are transactions of the ledger.',
  'getBatch.200.token_scope': 'UUID of the token scope. Present for `token-create` only.',
  'listBatches.200.token_scope': 'UUID of the token scope. Present for `token-create` only.',
  batches: 'The batches, newest first.',
  'listBatches.query.limit': { default: 50 },
  dry_run: 'Whether outcomes are predicted only and nothing is changed.',
  'createBatch.query.dry_run': {
    description:
      '`true` predicts every outcome and changes nothing. It also needs the role TOKEN_READ, and takes no `batch_id`.',
    default: 'false',
  },
  'createBatch.query.on_conflict': { default: 'update' },
  'createBatch.query.on_expired': { default: 'import' },
  progress: 'Part of the chunks that are done, from 0 to 1.',
  records: 'Number of records in the batch. Absent where its sender has not said it.',
  records_done: 'Number of records that have their outcome.',
  chunks: 'Number of chunks that the batch was cut into. Absent where its sender has not said it.',
  chunks_done: 'Number of chunks that are done.',
  'counts.CREATED': 'Records that created a token.',
  'counts.UPDATED': 'Records that changed a token.',
  'counts.UNCHANGED': 'Records whose token already was as they asked.',
  'counts.DUPLICATE': 'Records of a card that another record of the batch stands for; they carry that token.',
  'counts.REJECTED': 'Records that were refused; `reason` in the results says why.',
  'counts.FAILED': 'Records that failed by a fault; sending them again may help.',
  'counts.CANCELLED': 'Records that had not started when the batch was cancelled.',
  finished_at: 'When the last record had its outcome, RFC 3339 in UTC. Absent until then.',
  kty: 'Key type (RFC 7517): `RSA`, `EC` or `OKP`.',
  kid: 'Alias of the key; goes into `public_key_alias`.',
  use: 'Always `enc`: the key is for encryption.',
  alg: 'Key management algorithm of the JWE (RFC 7518): `RSA-OAEP-256` or `ECDH-ES`.',
  alias: 'Alias of the key; goes into `public_key_alias`.',
  public_key: 'The public key, armored (RFC 9580).',
}

const BATCH = 'cards-2026-01'
const status = {
  batch_id: BATCH,
  kind: 'token-create',
  token_scope: SCOPE,
  dry_run: false,
  state: 'FINISHED',
  finished: true,
  progress: 1,
  records: 3,
  records_done: 3,
  chunks: 1,
  chunks_done: 1,
  counts: { CREATED: 2, UPDATED: 0, UNCHANGED: 0, DUPLICATE: 0, REJECTED: 1, FAILED: 0, CANCELLED: 0 },
  accepted_at: ACCEPTED_AT,
  finished_at: '2026-01-31T09:30:01.250Z',
}
const running = {
  ...status,
  state: 'ACCEPTED',
  finished: false,
  progress: 0,
  records_done: 0,
  chunks_done: 0,
  counts: { CREATED: 0, UPDATED: 0, UNCHANGED: 0, DUPLICATE: 0, REJECTED: 0, FAILED: 0, CANCELLED: 0 },
  finished_at: undefined,
}
const rows = [
  { reference: 'cust-1', card_number: '4111111111111111', expiry_month: '12', expiry_year: '2030' },
  { reference: 'cust-2', card_number: '5555555555554444', expiry_month: '7', expiry_year: '2029' },
]
const csv = [Object.keys(rows[0] ?? {}), ...rows.map(row => Object.values(row))].map(cells => `${cells.join(',')}\n`)
const result = {
  line: 2,
  reference: 'cust-1',
  outcome: 'CREATED',
  code: 200,
  reuse_token: REUSE_TOKEN,
  bin: '41111111',
  last_four: '1111',
  expiry_month: 12,
  expiry_year: 2030,
  brand: 'VISA',
  token_status: 'ACTIVE',
}
const CSV_RESULTS = `line,reference,outcome,code,reuse_token,analytics_token,bin,last_four,expiry_month,expiry_year,brand,reason
2,cust-1,CREATED,200,${REUSE_TOKEN},,41111111,1111,12,2030,VISA,
`
const SEEN = 'Needs the role TOKEN_READ or that of the record kind; only batches of the same client are found.'
const notFound = { 400: ['field_format', 'params.id'], 404: ['batch_not_found', 'params.id'] } as const

export const BATCH_OPERATIONS: Readonly<Record<string, OperationNotes>> = {
  createBatch: {
    description:
      'The body is a file of records, as CSV or NDJSON, with the columns of `tokenmill migrate` (docs/migration.md). It is answered once all of it is stored; nothing of a body that breaks off is done. Card numbers travel in clear in this body: use TLS. Needs the role of the record kind (TOKEN_WRITE, TOKEN_LIFECYCLE or SCHEME_TOKEN).',
    parameters: { kind: 'token-create', token_scope: SCOPE, batch_id: BATCH },
    body: {
      'application/x-ndjson': { rows: rows.map(row => `${JSON.stringify(row)}\n`).join('') },
      'text/csv': { rows: csv.join('') },
    },
    answers: {
      202: {
        description: 'All of the body is stored, and will be worked. The batch is at Location.',
        examples: json({ accepted: { batch_id: BATCH, records: 3, chunks: 1, accepted_at: ACCEPTED_AT } }),
      },
    },
    refusals: { 400: ['batch_id_reused', 'query.batch_id'], 403: ['scope_forbidden', 'query.token_scope'] },
  },
  getBatch: {
    description: `Tells how many records of a batch are done, and with which outcomes. ${SEEN}`,
    parameters: { id: BATCH },
    answers: {
      200: { description: 'How far the batch has come.', examples: json({ accepted: running, finished: status }) },
    },
    refusals: notFound,
  },
  listBatches: {
    description:
      'The batches of the client, whether they came over HTTP or as chunks on the queue; dry runs are none. A caller with the role TOKEN_READ sees batches of every kind of token record, others those whose role they have; ledger batches need LEDGER_WRITE. For the next page, `before` is the last `batch_id` of this one.',
    parameters: { state: 'STALLED', since: '2026-01-31T00:00:00Z', before: BATCH, limit: 50 },
    answers: {
      200: { description: 'The batches.', examples: json({ page: { batches: [status] } }) },
    },
    refusals: { 400: ['field_value', 'query.state'], 404: ['batch_not_found', 'query.before'] },
  },
  cancelBatch: {
    description:
      'Records that have not started will not start and end as CANCELLED; what is done stays done. Needs the role of the record kind.',
    parameters: { id: BATCH },
    answers: { 204: { description: 'Cancelled, or ended before.' } },
    refusals: notFound,
  },
  getBatchResults: {
    description: `The results of a finished batch, one row for each record, in the order of the body. The Accept header chooses: CSV, or NDJSON with \`application/x-ndjson\`. Before the end of the batch the answer is 404. ${SEEN}`,
    parameters: { id: BATCH },
    answers: {
      200: {
        examples: {
          'text/csv': { results: CSV_RESULTS },
          'application/x-ndjson': { results: `${JSON.stringify(result)}\n` },
        },
      },
    },
    refusals: { 400: ['field_format', 'params.id'], 404: ['batch_unfinished', 'params.id'] },
  },
  followBatch: {
    description: `Progress of a batch as server-sent events, until it is finished. The data of each event is the body of getBatch. A client follows at most 50 batches at once. ${SEEN}`,
    parameters: { id: BATCH },
    answers: {
      200: {
        examples: { 'text/event-stream': { events: `event: finished\nid: 1\ndata: ${JSON.stringify(status)}\n\n` } },
      },
    },
    refusals: notFound,
  },
  getCaptureKeys: {
    description:
      'The public keys that cards of an entity are encrypted to, for web pages and SDKs. The answer may be cached for 60 seconds. An entity that is not known has no keys.',
    parameters: { entity_id: ENTITY },
    answers: {
      200: {
        description: 'A JWKS (RFC 7517), and the OpenPGP keys beside it.',
        examples: json({
          keys: {
            keys: [
              {
                kty: 'EC',
                crv: 'P-256',
                kid: ALIAS,
                use: 'enc',
                alg: 'ECDH-ES',
                x: 'xjw76ObUmF8i3cqpCKS91_RfbsGBOEcHEDeqeQceJww',
                y: 'Vd5fQC0lFH9bJ4_lhvVmpECsU_rH-DuzGwJnWz4nEjE',
              },
            ],
            openpgp: [],
          },
        }),
      },
    },
    refusals: { 400: ['field_required', 'query.entity_id'] },
  },
}
