// The connector to Mastercard MDES Digital Enablement: turns each provider call into one to three MDES calls, and
// answers of MDES into provider answers. The provisioning id is used as MDES's taskId. Nothing is repeated or stored
// here: the workers' saga does that.
import { randomUUID } from 'node:crypto'
import type { z } from 'zod'
import { assert } from '../errors.ts'
import type { Logger } from '../logger.ts'
import type { Outbound, OutboundAnswer } from '../outbound.ts'
import type { Overload } from './aimd.ts'
import type { Caller } from './call.ts'
import {
  type EncryptedPayload,
  type EncryptPayload,
  type MastercardKeys,
  openPayload,
  signRequest,
} from './mastercard.ts'
import { answerOfError, MDES_ERRORS } from './mdes-errors.ts'
import * as wire from './mdes-wire.ts'
import type { LookupKey, ProviderAnswer, ProviderToken, ProvisionCard, SchemeProvider, Urgency } from './provider.ts'

interface MdesOptions {
  outbound: Outbound
  caller: Caller
  log: Logger
  /** The URL up to, and without, `/digitization`. */
  baseUrl: string
  tokenRequestorId: string
  keys: MastercardKeys
  encrypt: EncryptPayload
  timeoutMs: number
  /**
   * MDES tells this requestor the numbers of its tokens. Each provisioning then ends with a second call, for the
   * number.
   */
  tokenNumbers: boolean
}

type Operation = 'tokenize' | 'getToken' | 'suspend' | 'unsuspend' | 'delete' | 'searchTokens' | 'getTaskStatus'
/**
 * Whether a call may be repeated at once if its answer was lost. `false`: MDES is asked first. A repeat would do no
 * harm, but callers rely on these changes or compensate them, so it must be known whether the first call had its
 * effect.
 */
const REPEATABLE: Record<Operation, boolean> = {
  tokenize: false,
  getToken: true,
  suspend: false,
  unsuspend: false,
  delete: true,
  searchTokens: true,
  getTaskStatus: true,
}
const TASK_ID_MAX = 64
const BYTES_MAX = 512 * 1024
/**
 * Whether a token's state shows that the operation had its effect. The token requestor can't lift a suspension by the
 * issuer.
 */
const HAS_EFFECT = {
  suspend: token => token.state === 'SUSPENDED',
  unsuspend: token =>
    token.state === 'ACTIVE' || (token.state === 'SUSPENDED' && !token.suspendedBy.includes('TOKEN_REQUESTOR')),
  delete: token => token.state === 'DEACTIVATED',
} as const satisfies Partial<Record<Operation, (token: ProviderToken) => boolean>>

/** A readable answer, or what a failure means for the caller. */
type Reply<T> = { value: T } | { failed: ProviderAnswer<never>; code: string | undefined }

export function openMdes(options: MdesOptions): SchemeProvider {
  const { outbound, caller, log, keys, tokenRequestorId } = options

  /**
   * Makes one MDES call. `body` is called once the call has its permit: encrypting a whole batch at once would block
   * the event loop.
   */
  async function ask<T>(
    operation: Operation,
    body: () => object,
    shape: z.ZodType<T>,
    urgency: Urgency,
  ): Promise<Reply<T>> {
    const url = `${options.baseUrl}/digitization/static/1/0/${operation}`
    const called = await caller.call(
      urgency,
      () => {
        const text = JSON.stringify({ requestId: randomUUID(), ...body() })
        return outbound.request(url, {
          method: 'POST',
          headers: {
            // Signed only now, because the signature's time stamp is valid for minutes.
            authorization: signRequest(keys, 'POST', url, text),
            'content-type': 'application/json',
            accept: 'application/json',
          },
          body: text,
          timeoutMs: options.timeoutMs,
          bytesMax: BYTES_MAX,
        })
      },
      overloadOf,
    )
    const repeatable = REPEATABLE[operation]
    if (called.called === 'kept')
      return { failed: { answer: 'again', once: false, afterMs: called.afterMs }, code: undefined }
    if (called.called === 'failed') {
      const lost = called.sent && !repeatable
      return { failed: lost ? { answer: 'unknown' } : { answer: 'again', once: false }, code: undefined }
    }
    const { answer } = called
    const json = wire.readJson(answer)
    const code = wire.errorCodeOf(json)
    if (answer.status !== 200 || code !== undefined) {
      if (code === undefined || !Object.hasOwn(MDES_ERRORS, code))
        log.warn(
          { provider: 'mdes', operation, status: answer.status },
          'the scheme answered an error we have no rule for',
        )
      return { failed: answerOfError(code, answer, repeatable), code }
    }
    const parsed = shape.safeParse(json)
    if (parsed.success) return { value: parsed.data }
    log.warn({ provider: 'mdes', operation }, 'the scheme answered something unreadable')
    return { failed: repeatable ? { answer: 'again', once: true } : { answer: 'unknown' }, code: undefined }
  }

  function openDetail(payload: EncryptedPayload | undefined): wire.TokenDetail | undefined {
    if (payload === undefined) return undefined
    const detail = wire.TokenDetail.safeParse(openPayload(keys.decryptionKey, payload))
    if (!detail.success) {
      log.warn({ provider: 'mdes' }, 'the details of a scheme token could not be opened; see decryptionKeyFile')
      return undefined
    }
    if ((detail.data.tokenNumber?.length ?? 0) > wire.NETWORK_TOKEN_DIGITS_MAX)
      log.warn({ provider: 'mdes' }, 'a network token is longer than 16 digits; its number is left out')
    return detail.data
  }

  async function get(reference: string, urgency: Urgency): Promise<ProviderAnswer<ProviderToken>> {
    const body = () => ({ tokenUniqueReference: reference, includeTokenDetail: String(options.tokenNumbers) })
    const reply = await ask('getToken', body, wire.GetTokenAnswer, urgency)
    if ('failed' in reply) return reply.failed
    const { token, tokenDetail } = reply.value
    if (token.tokenUniqueReference !== reference) return mismatch('getToken', { answer: 'again', once: true })
    return { answer: 'done', value: wire.readToken(token, token.tokenInfo, openDetail(tokenDetail)) }
  }

  /** The answer belongs to another request, so nothing in it is used. */
  function mismatch<T>(operation: Operation, answer: ProviderAnswer<T>): ProviderAnswer<T> {
    log.error({ provider: 'mdes', operation }, 'the scheme answered another question than was asked')
    return answer
  }

  async function provision(id: string, card: ProvisionCard, urgency: Urgency): Promise<ProviderAnswer<ProviderToken>> {
    assert(id.length > 0 && id.length <= TASK_ID_MAX, 'a provisioning id has 1 to 64 characters')
    const body = () => ({
      tokenRequestorId,
      tokenType: 'CLOUD',
      taskId: id,
      fundingAccountInfo: { encryptedPayload: options.encrypt(wire.fundingAccount(card)) },
    })
    const reply = await ask('tokenize', body, wire.TokenizeAnswer, urgency)
    if ('failed' in reply) return reply.failed
    const { value } = reply
    if (value.decision === 'DECLINED') return { answer: 'refused', reason: 'card_declined' }
    const suffix = value.tokenInfo?.accountPanSuffix
    if (suffix !== undefined && !card.pan.reveal().endsWith(suffix)) return mismatch('tokenize', { answer: 'unknown' })
    const status = {
      tokenUniqueReference: value.tokenUniqueReference,
      status: value.decision === 'APPROVED' ? ('ACTIVE' as const) : ('INACTIVE' as const),
      suspendedBy: [],
    }
    const token = wire.readToken(status, value.tokenInfo, openDetail(value.tokenDetail))
    if (!options.tokenNumbers) return { answer: 'done', value: token }
    // The token exists now. If the next call fails, the answer is still that the token was made.
    const known = await get(token.reference, urgency)
    return known.answer === 'done'
      ? { answer: 'done', value: { ...known.value, par: known.value.par ?? token.par } }
      : { answer: 'done', value: token }
  }

  async function change(
    operation: 'suspend' | 'unsuspend' | 'delete',
    reference: string,
    urgency: Urgency,
  ): Promise<ProviderAnswer<ProviderToken>> {
    const body = () => ({ tokenUniqueReferences: [reference], causedBy: 'TOKEN_REQUESTOR', reasonCode: 'OTHER' })
    const reply = await ask(operation, body, wire.TokensAnswer, urgency)
    if ('failed' in reply) return unlessDoneBefore(operation, reference, urgency, reply.failed)
    const token = reply.value.tokens.find(one => one.tokenUniqueReference === reference)
    if (token === undefined)
      return mismatch(operation, REPEATABLE[operation] ? { answer: 'again', once: true } : { answer: 'unknown' })
    if (!('errorCode' in token)) return { answer: 'done', value: wire.readToken(token, undefined, undefined) }
    const ofToken = answerOfError(
      token.errorCode,
      { status: 200, headers: {}, body: Buffer.alloc(0) },
      REPEATABLE[operation],
    )
    return unlessDoneBefore(operation, reference, urgency, ofToken)
  }

  /**
   * A "wrong state" error may mean that an earlier call, whose answer was lost, had its effect: asks MDES for the
   * token's state.
   */
  async function unlessDoneBefore(
    operation: keyof typeof HAS_EFFECT,
    reference: string,
    urgency: Urgency,
    failed: ProviderAnswer<never>,
  ): Promise<ProviderAnswer<ProviderToken>> {
    if (failed.answer !== 'refused' || failed.reason !== 'token_state') return failed
    const known = await get(reference, urgency)
    return known.answer === 'done' && HAS_EFFECT[operation](known.value) ? known : failed
  }

  async function find(
    id: string,
    key: LookupKey,
    urgency: Urgency,
  ): Promise<ProviderAnswer<ProviderToken | undefined>> {
    const task = await ask('getTaskStatus', () => ({ tokenRequestorId, taskId: id }), wire.TaskAnswer, urgency)
    if ('failed' in task) return task.code === 'INVALID_TASK_ID' ? { answer: 'done', value: undefined } : task.failed
    const { status } = task.value
    if (status === 'FAILED') return { answer: 'done', value: undefined }
    if (status !== 'COMPLETED') return { answer: 'again', once: false, afterMs: 1_000 }
    // A task doesn't name its token. The token is one of the card's tokens, and no other provisioning id has it.
    if (key.card === undefined) return { answer: 'unknown' }
    const { cardAccountData } = wire.fundingAccount(key.card)
    const body = () => ({
      tokenRequestorId,
      fundingAccountInfo: { encryptedPayload: options.encrypt({ cardAccountData }) },
    })
    const search = await ask('searchTokens', body, wire.SearchAnswer, urgency)
    if ('failed' in search)
      return search.code === 'NO_ACTIVE_TOKENS' ? { answer: 'done', value: undefined } : search.failed
    const ours = search.value.tokens
      .filter(token => token.status !== 'DEACTIVATED' && !key.taken.includes(token.tokenUniqueReference))
      .filter(({ statusTimestamp: at }) => at === undefined || !(Date.parse(at) < (key.since ?? 0)))
      .sort((a, b) => (a.tokenUniqueReference < b.tokenUniqueReference ? -1 : 1))[0]
    // The task is completed but has no live token: the token was deleted after that.
    if (ours === undefined) return { answer: 'done', value: undefined }
    if (!options.tokenNumbers) return { answer: 'done', value: wire.readToken(ours, ours.tokenInfo, undefined) }
    return get(ours.tokenUniqueReference, urgency)
  }

  return {
    name: 'mdes',
    provision,
    suspend: (_, reference, urgency) => change('suspend', reference, urgency),
    resume: (_, reference, urgency) => change('unsuspend', reference, urgency),
    delete: (_, reference, urgency) => change('delete', reference, urgency),
    get: (_, reference, urgency) => get(reference, urgency),
    find,
    close: async () => caller.close(),
  }
}

/**
 * MDES also answers application errors with 500. Only errors of MDES itself, and errors without a code, count as
 * overload.
 */
function overloadOf(answer: OutboundAnswer): Overload {
  if (answer.status < 500) return 'none'
  const code = wire.errorCodeOf(wire.readJson(answer))
  if (code === undefined) return 'failing'
  return code === 'SERVICE_UNAVAILABLE' || code === 'SYSTEM_ERROR' ? 'failing' : 'none'
}
