// MDES Digital Enablement as its public API describes it: tokenize, getToken, suspend, unsuspend, delete, searchTokens,
// getTaskStatus. Errors have the form that MDES gives them: application errors are sent with status 500, errors of the
// API gateway in its own form.
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { z } from 'zod'
import { change, type Deed } from './change.ts'
import type { SimulatedTask, SimulatedToken } from './journal.ts'
import { TOKEN_REQUESTOR_ID } from './keys.ts'
import { type Outcome, outcomeOf, type Way } from './outcomes.ts'
import { describe, makeToken, type SimulatorState } from './state.ts'

/** Thrown to answer with an application error. */
class Refused extends Error {
  readonly code: string

  constructor(code: string) {
    super(code)
    this.code = code
  }
}

const requestId = z.string().min(1).max(64)
const Funding = z.object({ encryptedPayload: z.record(z.string(), z.unknown()) })
const Tokenize = z.object({
  requestId,
  tokenType: z.literal('CLOUD'),
  tokenRequestorId: z.literal(TOKEN_REQUESTOR_ID),
  taskId: z.string().min(1).max(64),
  fundingAccountInfo: Funding,
})
const Account = z.object({
  cardAccountData: z.object({
    accountNumber: z.string().regex(/^\d{9,19}$/),
    expiryMonth: z.string().regex(/^(0[1-9]|1[0-2])$/),
    expiryYear: z.string().regex(/^\d\d$/),
  }),
})
const GetToken = z.object({
  requestId,
  tokenUniqueReference: z.string().max(64),
  includeTokenDetail: z.enum(['true', 'false']).default('false'),
})
const Change = z.object({
  requestId,
  tokenUniqueReferences: z.array(z.string().max(64)).min(1).max(10),
  causedBy: z.enum(['CARDHOLDER', 'TOKEN_REQUESTOR']),
  reasonCode: z.enum(['SUSPECTED_FRAUD', 'OTHER']),
})
const Search = z.object({ requestId, tokenRequestorId: z.literal(TOKEN_REQUESTOR_ID), fundingAccountInfo: Funding })
const TaskStatus = z.object({ requestId, tokenRequestorId: z.literal(TOKEN_REQUESTOR_ID), taskId: z.string().max(64) })

/** How long a request that gets no answer is held open, unless the caller closes it first. */
const HANG_MS = 120_000
const SLOW_MS = 2_000
const LATER_MS = 2_000
const ONCE: ReadonlySet<Way> = new Set(['hang_before_once', 'reset_before_once', 'fail_once', 'busy_once'])

export function registerMdes(server: FastifyInstance, state: SimulatorState): void {
  const { journal, security } = state
  /** Tasks that were requested before. Some outcomes disturb only a task's first request. */
  const seen = new Set<string>()
  const operations: Record<string, (body: unknown, reply: FastifyReply) => Promise<unknown>> = {
    tokenize,
    getToken,
    suspend: body => changeTokens(body, 'suspend'),
    unsuspend: body => changeTokens(body, 'resume'),
    delete: body => changeTokens(body, 'delete'),
    searchTokens,
    getTaskStatus,
  }
  for (const [operation, answer] of Object.entries(operations))
    server.post(`/mdes/digitization/static/1/0/${operation}`, async (request, reply) => {
      state.count(operation)
      try {
        return await answer(parse(request.body), reply)
      } catch (error) {
        if (!(error instanceof Refused)) throw error
        state.count(`error ${error.code}`)
        return reply.code(500).send(failure(error.code))
      }
    })

  function open(payload: unknown): z.infer<typeof Account>['cardAccountData'] {
    const content = security.decrypt(payload)
    if (content === undefined) throw new Refused('CRYPTOGRAPHY_ERROR')
    return read(Account, content).cardAccountData
  }

  async function tokenize(body: unknown, reply: FastifyReply): Promise<unknown> {
    const { taskId, fundingAccountInfo } = read(Tokenize, body)
    const { accountNumber: pan, expiryMonth, expiryYear } = open(fundingAccountInfo.encryptedPayload)
    const outcome = outcomeOf(pan)
    const known = journal.tasks.get(taskId)
    if (known !== undefined && known.state !== 'FAILED') {
      state.count('repeats')
      throw new Refused('DUPLICATE_REQUEST')
    }
    const way = wayOf(taskId, outcome)
    const refused = refuseAtFirst(way, reply)
    if (refused) return refused
    const error = way === 'fail_once' ? 'INTERNAL_SERVICE_FAILURE' : outcome.error
    if (error !== undefined || outcome.decision === 'DECLINED') {
      await journal.record({ task: { id: taskId, state: 'FAILED' } })
      if (error !== undefined) throw new Refused(error)
      return { responseId: newId(), decision: 'DECLINED' }
    }
    const token = makeToken(state, { taskId, pan, expiry: expiryMonth + expiryYear }, outcome)
    const task: SimulatedTask = { id: taskId, state: 'COMPLETED' }
    if (way === 'later') {
      await journal.record({ task: { id: taskId, state: 'IN_PROGRESS' } })
      state.later(LATER_MS, () => journal.record({ task, token }))
      return hang(reply)
    }
    await journal.record({ task, token })
    if (outcome.suspendedAfterMs !== undefined) suspendLater(token.reference, outcome.suspendedAfterMs)
    return answerIn(way, tokenized(token, outcome), reply)
  }

  /** How the request is answered; an outcome for the first request only is ignored the second time. */
  function wayOf(taskId: string, { way }: Outcome): Way | undefined {
    const isOver = way !== undefined && ONCE.has(way) && seen.has(taskId)
    seen.add(taskId)
    return isOver ? undefined : way
  }

  function tokenized(token: SimulatedToken, outcome: Outcome): Record<string, unknown> {
    const { tokenInfo } = describe(token)
    return {
      responseHost: 'scheme.simulator',
      responseId: newId(),
      decision: outcome.decision ?? 'APPROVED',
      tokenUniqueReference: token.reference,
      panUniqueReference: `FSIMMC${token.card}`,
      tokenInfo,
      tokenDetail: {
        tokenUniqueReference: token.reference,
        ...security.encrypt({ ...(token.par === undefined ? {} : { paymentAccountReference: token.par }) }),
      },
    }
  }

  function suspendLater(reference: string, ms: number): void {
    state.later(ms, async () => {
      const token = journal.tokens.get(reference)
      const suspended = token && change(token, 'suspend', 'ISSUER', Date.now())
      if (suspended === undefined) return
      await journal.record({ token: suspended })
      await state.notify(suspended, 'SUSPECTED_FRAUD')
    })
  }

  async function getToken(body: unknown): Promise<unknown> {
    const { tokenUniqueReference, includeTokenDetail } = read(GetToken, body)
    const token = journal.tokens.get(tokenUniqueReference)
    if (token === undefined) throw new Refused('INVALID_TOKEN_UNIQUE_REFERENCE')
    const detail = {
      tokenNumber: token.number,
      expiryMonth: token.expiry.slice(0, 2),
      expiryYear: token.expiry.slice(2),
      ...(token.par === undefined ? {} : { paymentAccountReference: token.par }),
    }
    return {
      responseId: newId(),
      token: { ...describe(token), tokenRequestorId: TOKEN_REQUESTOR_ID },
      ...(includeTokenDetail === 'true' && token.state !== 'DEACTIVATED'
        ? { tokenDetail: { tokenUniqueReference: token.reference, ...security.encrypt(detail) } }
        : {}),
    }
  }

  async function changeTokens(body: unknown, deed: Deed): Promise<unknown> {
    const { tokenUniqueReferences, causedBy } = read(Change, body)
    const tokens = tokenUniqueReferences.map(reference => journal.tokens.get(reference))
    const changed = tokens.map(token => {
      if (token === undefined) throw new Refused('INVALID_TOKEN_UNIQUE_REFERENCE')
      const after = change(token, deed, causedBy, Date.now())
      if (after === undefined) throw new Refused('INVALID_TOKEN_STATUS')
      return after
    })
    await Promise.all(changed.map(token => journal.record({ token })))
    return {
      responseHost: 'scheme.simulator',
      responseId: newId(),
      tokens: changed.map(token => ({ ...describe(token), tokenInfo: undefined })),
    }
  }

  async function searchTokens(body: unknown): Promise<unknown> {
    const { fundingAccountInfo } = read(Search, body)
    const { accountNumber } = open(fundingAccountInfo.encryptedPayload)
    const found = journal.tokensOf(security.fingerprint(accountNumber)).filter(({ state }) => state !== 'DEACTIVATED')
    return { responseHost: 'scheme.simulator', responseId: newId(), tokens: found.map(describe) }
  }

  async function getTaskStatus(body: unknown): Promise<unknown> {
    const task = journal.tasks.get(read(TaskStatus, body).taskId)
    if (task === undefined) throw new Refused('INVALID_TASK_ID')
    return { responseId: newId(), status: task.state }
  }
}

function parse(body: unknown): unknown {
  try {
    return JSON.parse(String(body)) as unknown
  } catch {
    throw new Refused('INVALID_JSON')
  }
}

function read<T>(shape: z.ZodType<T>, value: unknown): T {
  const parsed = shape.safeParse(value)
  if (parsed.success) return parsed.data
  throw new Refused(parsed.error.issues[0]?.code === 'invalid_type' ? 'MISSING_REQUIRED_FIELD' : 'INVALID_FIELD_VALUE')
}

const newId = () => randomBytes(8).toString('hex')

function failure(code: string): Record<string, unknown> {
  const recoverable = code === 'INTERNAL_SERVICE_FAILURE' || code === 'SERVICE_UNAVAILABLE'
  return {
    responseHost: 'scheme.simulator',
    responseId: newId(),
    errorCode: code,
    errorDescription: code,
    Errors: { source: 'MDES', errorCode: code, description: code, reasonCode: code, recoverable },
  }
}

/** Refuses the request as `way` says; undefined if the request is to be worked. */
function refuseAtFirst(way: Way | undefined, reply: FastifyReply): FastifyReply | undefined {
  if (way === 'hang_before_once') return hang(reply)
  if (way === 'reset_before_once') return reset(reply)
  if (way === 'busy_once') return reply.code(503).header('retry-after', '1').send(failure('SERVICE_UNAVAILABLE'))
  return undefined
}

async function answerIn(way: Way | undefined, body: Record<string, unknown>, reply: FastifyReply): Promise<unknown> {
  if (way === 'hang_after') return hang(reply)
  if (way === 'reset_after') return reset(reply)
  if (way === 'garbled_after') return reply.type('application/json').send('{"responseId":')
  if (way === 'slow') await pause(SLOW_MS)
  if (way !== 'twice') return body
  const text = JSON.stringify(body)
  const length = Buffer.byteLength(text)
  const answer = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${text}`
  reply.hijack().raw.socket?.write(answer + answer)
  return reply
}

function hang(reply: FastifyReply): FastifyReply {
  const { socket } = reply.hijack().raw
  const timer = setTimeout(() => socket?.destroy(), HANG_MS)
  socket?.once('close', () => clearTimeout(timer))
  return reply
}

function reset(reply: FastifyReply): FastifyReply {
  reply.hijack().raw.socket?.resetAndDestroy()
  return reply
}
