// A client over HTTP: encrypts cards, sends what its caller asks for until the gateway has answered, and waits for what takes
// longer. It needs no queue server, and no key of the vault.
import { createHash, randomUUID } from 'node:crypto'
import type { Clock } from '../../src/clock.ts'
import { ConfigError } from '../../src/config.ts'
import type { Logger } from '../../src/logger.ts'
import { openCaptureKeys } from '../client/capture-keys.ts'
import { encryptCard } from '../client/card.ts'
import { type HttpCredentials, readHttpCredentials, takeHttpCredentials } from '../client/client-file.ts'
import type { CardToEncrypt } from '../client/interface.ts'
import { openTrustedKeys } from '../client/trusted-keys.ts'
import { basic, bearer } from './authorization.ts'
import { HttpError, WaitError } from './http-error.ts'
import type {
  BatchBody,
  BatchRow,
  HttpClient,
  HttpOptions,
  OperationRecord,
  ReadOptions,
  WriteOptions,
} from './interface.ts'
import { type Asked, jsonOf, openRequests, type Requests } from './requests.ts'
import { sendBatch } from './send-batch.ts'

interface Around {
  clock: Clock
  log: Logger
}

const ANSWER_MS = 120_000
/** The public keys are fetched anew after this time. */
const CAPTURE_KEYS_MS = 86_400_000
/** After this time a batch that couldn't be sent isn't sent again. */
const UPLOAD_MS = 600_000
/** Between two questions whether something has ended: longer each time. */
const POLL_MS = 100
const POLL_MS_MAX = 1_000
/** How long something that takes as long as it takes is awaited without `timeoutMs`: longer than any job may wait. */
const END_MS_MAX = 8 * 86_400_000

const CARD = '/api/v2/card'
const OPERATIONS = '/api/v2/operations'
const BATCHES = '/api/v2/batches'
const REPORTS = '/report-engine/api/v1/reports'
const JSON_BODY = { 'content-type': 'application/json' }
const ASYNC = { prefer: 'respond-async' }
const BATCH_TYPES = { ndjson: 'application/x-ndjson', csv: 'text/csv' }

export async function openHttpClient(options: HttpOptions, { clock, log }: Around): Promise<HttpClient> {
  const credentials = await credentialsOf(options)
  const { timeoutMs = ANSWER_MS } = options
  const baseUrl = baseUrlOf(options.baseUrl ?? credentials.baseUrl)
  const { signsIn } = credentials
  const authorization =
    'apiKey' in signsIn ? basic(credentials.userId, signsIn.apiKey) : bearer({ ...credentials, ...signsIn }, clock)
  const requests = openRequests({ baseUrl, authorization, timeoutMs, clock, fetch: options.fetch ?? fetch })
  const captureKeys = openCaptureKeys(credentials, openTrustedKeys(credentials, log), clock)
  let fetchedAt = Number.NEGATIVE_INFINITY

  /** Encrypts to the newest key. The keys of the client's file do, if the gateway has none that can be proved. */
  async function encrypted(card: CardToEncrypt) {
    if (clock() - fetchedAt > CAPTURE_KEYS_MS) {
      fetchedAt = clock()
      const query = { entity_id: credentials.entityId }
      try {
        await captureKeys.take(await requests.json({ method: 'GET', path: '/.well-known/capture-keys', query }))
      } catch (error) {
        if (!(error instanceof ConfigError || error instanceof HttpError)) throw error
        log.warn({ err: error }, 'no newer capture keys were taken; those of the client’s file are used')
      }
    }
    return encryptCard(card, { captureKeys: captureKeys.current() }, clock())
  }
  async function withCard<Body extends object>(body: Body): Promise<Omit<Body, 'card'>> {
    const { card, ...rest } = body as Body & { card?: CardToEncrypt }
    return card === undefined ? rest : { ...rest, ...(await encrypted(card)) }
  }
  async function read<Answer>(path: string, given: ReadOptions = {}, query?: Asked['query']): Promise<Answer> {
    const asked: Asked = { method: 'GET', path, ...(query && { query }), timeoutMs: given.timeoutMs }
    return (await requests.json(asked)) as Answer
  }
  async function write<Answer>(
    method: Asked['method'],
    path: string,
    body: object | undefined,
    given: WriteOptions = {},
  ): Promise<Answer> {
    const text = body && JSON.stringify(body)
    const idempotencyKey = given.idempotencyKey ?? randomUUID()
    const asked: Asked = {
      method,
      path,
      headers: {
        ...(text !== undefined && JSON_BODY),
        ...(given.respondAsync && ASYNC),
      },
      ...(text !== undefined && { body: () => text }),
      idempotencyKey,
      timeoutMs: given.timeoutMs,
    }
    const response = await requests.send(asked)
    if (response.status === 204) return undefined as Answer
    const answer = (await jsonOf(response, asked)) as Answer & { receipt_id?: string }
    if (response.status !== 202 || !given.respondAsync) return answer
    const receiptId = String(answer.receipt_id)
    given.onAccepted?.(receiptId)
    return (await operationEnd(receiptId, given)).record as Answer
  }
  const operation = (receiptId: string, given?: ReadOptions) =>
    read<OperationRecord>(`${OPERATIONS}/${segmentOf('receiptId', receiptId)}`, given)
  async function operationEnd(receiptId: string, given: ReadOptions = {}): Promise<OperationRecord> {
    const until = deadline(clock, given.timeoutMs ?? END_MS_MAX)
    for (;;) {
      const found = await operation(receiptId, { timeoutMs: until.left() })
      if (found.status === 'SUCCEEDED') return found
      if (found.status === 'FAILED') throw failedOperation(found)
      await until.pause(requests, `operation ${receiptId}`)
    }
  }
  const cardPath = (id: string, more = '') => `${CARD}/${segmentOf('id', id)}${more}`
  const batchPath = (id: string, more = '') => `${BATCHES}/${segmentOf('batchId', id)}${more}`

  const client: HttpClient = {
    baseUrl,
    async createToken(request, given) {
      const scope = request.token_scope ?? credentials.tokenScope
      if (scope === undefined)
        throw new ConfigError('createToken: `token_scope` is not set, and the client’s file has none')
      return write('PUT', CARD, await withCard({ ...request, token_scope: scope }), given)
    },
    getToken: (id, given) => read(cardPath(id), given),
    updateToken: async (id, request, given) => write('PATCH', cardPath(id), await withCard(request), given),
    suspendToken: (id, given) => write('PATCH', cardPath(id, '/suspend'), undefined, given),
    activateToken: (id, given) => write('PATCH', cardPath(id, '/activate'), undefined, given),
    deleteToken: (id, given) => write('DELETE', cardPath(id), undefined, given),

    putOwner: (id, owner, given) => write('PUT', cardPath(id, '/references'), owner, given),
    async *owners(id, given) {
      for (let after: string | undefined; ; ) {
        const page = await read<OwnerPage>(cardPath(id, '/references'), given, { after })
        yield* page.references
        if (page.next === undefined) return
        after = String(page.next)
      }
    },
    async lookUpOwners(request, given = {}) {
      const text = JSON.stringify(request)
      const path = '/api/v2/references/lookup'
      const asked: Asked = { method: 'POST', path, headers: JSON_BODY, body: () => text, timeoutMs: given.timeoutMs }
      const { references } = (await requests.json(asked)) as { references: [] }
      return references
    },

    operation,
    operationEnd,

    batch: (options, records) =>
      sendBatch(options, records, { sender: client, tokenScope: credentials.tokenScope, now: clock() }),
    async submitBatch(rows, { format = 'ndjson', timeoutMs = UPLOAD_MS, ...query }) {
      const isDryRun = query.dry_run === 'true'
      const accepted = await requests.json({
        method: 'POST',
        path: BATCHES,
        query: { ...query, ...(isDryRun ? {} : { batch_id: query.batch_id ?? `c-${randomUUID()}` }) },
        headers: { 'content-type': BATCH_TYPES[format] },
        body: () => bodyOf(rows),
        idempotencyKey: query.batch_id ?? randomUUID(),
        timeoutMs,
      })
      return accepted as never
    },
    batchState: (batchId, given) => read(batchPath(batchId), given),
    async batchEnd(batchId, given = {}) {
      const until = deadline(clock, given.timeoutMs ?? END_MS_MAX)
      for (;;) {
        const batch = await client.batchState(batchId, { timeoutMs: until.left() })
        given.onProgress?.(batch)
        if (batch.finished) return batch
        await until.pause(requests, `batch ${batchId}`)
      }
    },
    async *batchResults(batchId, given = {}) {
      const headers = { accept: 'application/x-ndjson' }
      const path = batchPath(batchId, '/results')
      yield* requests.lines({ method: 'GET', path, headers, timeoutMs: given.timeoutMs }) as AsyncIterable<BatchRow>
    },
    async cancelBatch(batchId, given = {}) {
      const path = batchPath(batchId)
      await requests.send({ method: 'DELETE', path, idempotencyKey: randomUUID(), timeoutMs: given.timeoutMs })
    },

    orderReport: (order, given) => write('POST', REPORTS, order, given),
    async reportFile(reportUid, given = {}) {
      const until = deadline(clock, given.timeoutMs ?? END_MS_MAX)
      for (;;) {
        const path = `${REPORTS}/${segmentOf('reportUid', reportUid)}`
        const asked: Asked = { method: 'GET', path, streams: true, timeoutMs: given.timeoutMs }
        const answer = await requests.send(asked).catch(unlessPending)
        if (answer) return checked(answer)
        await until.pause(requests, `report ${reportUid}`)
      }
    },

    close: () => requests.close(),
  }
  return client
}

/** Throws `TypeError` for what is no text: in JavaScript often the member of a promise that wasn't awaited. */
function segmentOf(name: string, id: string): string {
  if (typeof id !== 'string' || id === '')
    throw new TypeError(
      `${name} is ${id === '' ? 'empty' : typeof id}, not the text of an id; is an \`await\` missing?`,
    )
  return encodeURIComponent(id)
}

interface OwnerPage {
  references: []
  next?: number
}

async function credentialsOf({ clientFile, credentials }: HttpOptions): Promise<HttpCredentials> {
  if (credentials) return takeHttpCredentials(credentials)
  if (!clientFile) throw new ConfigError('connectHttp: give `clientFile` or `credentials`')
  return readHttpCredentials(clientFile)
}

/** With `/oidc`, under which all services are, and without a slash at its end. */
function baseUrlOf(given: string): string {
  if (!URL.canParse(given) || !/^https?:$/.test(new URL(given).protocol))
    throw new ConfigError(`connectHttp: \`baseUrl\` is not a URL: https://host or http://127.0.0.1:8080`)
  const { origin, pathname } = new URL(given)
  const path = pathname.replace(/\/+$/, '')
  return `${origin}${path.endsWith('/oidc') ? path : `${path}/oidc`}`
}

function deadline(clock: Clock, timeoutMs: number) {
  const endsAt = clock() + timeoutMs
  let ms = POLL_MS
  return {
    left: () => Math.max(endsAt - clock(), 1),
    async pause(requests: Requests, what: string): Promise<void> {
      if (clock() + ms >= endsAt) throw new WaitError(what, timeoutMs)
      await requests.pause(ms)
      ms = Math.min(2 * ms, POLL_MS_MAX)
    },
  }
}

function failedOperation({ receipt_id: receiptId, code = 500, error = {} }: OperationRecord): HttpError {
  const { message, details, reversal_status: reversalStatus } = error as Partial<Failed>
  const asked = `operation ${receiptId}`
  return new HttpError({
    status: code,
    asked,
    message,
    isOwn: true,
    details,
    reversalStatus: code === 500 ? reversalStatus : undefined,
  })
}
type Failed = Pick<HttpError, 'details'> & { message: string; reversal_status: HttpError['reversalStatus'] }

function bodyOf(rows: BatchBody): string | Uint8Array | ReadableStream<Uint8Array> {
  if (typeof rows !== 'function') return rows
  return ReadableStream.from(encoded(rows()))
}

async function* encoded(pieces: AsyncIterable<string | Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) yield typeof piece === 'string' ? Buffer.from(piece) : piece
}

/** A report that has no file yet is answered 404, with its state. */
function unlessPending(error: unknown): undefined {
  const isPending =
    error instanceof HttpError && error.status === 404 && /is (INITIATED|PROCESSING_STARTED)\b/.test(error.message)
  if (!isPending) throw error
}

/** The file, whose ETag is its SHA-256. */
function checked({ headers, body }: Response): ReadableStream<Uint8Array> {
  const expected = /^"([0-9a-f]{64})"$/.exec(headers.get('etag') ?? '')?.[1]
  const digest = createHash('sha256')
  return (body ?? new ReadableStream<Uint8Array>()).pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(piece, out) {
        digest.update(piece)
        out.enqueue(piece)
      },
      flush() {
        if (expected !== undefined && digest.digest('hex') !== expected)
          throw new Error('the file of the report is not the one that was made: download it again')
      },
    }),
  )
}
