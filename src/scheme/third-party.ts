// The connector to a third-party tokeniser, as its contract in the scheme file configures it. It makes the third
// party's token for a card under the provisioning's id, finds the token by that id, and deletes it. Such a token has no
// states.
import type { Logger } from '../logger.ts'
import type { Outbound, OutboundAnswer } from '../outbound.ts'
import type { Secret } from '../secret.ts'
import { holdsPan, numbersIn, panFault, withoutPadding } from '../token/pan.ts'
import { parseReuseToken } from '../token/token.ts'
import { type Caller, retryAfterMs } from './call.ts'
import type { ProviderAnswer, ProviderToken, SchemeProvider, Urgency } from './provider.ts'
import type { ThirdPartySettings } from './scheme-file.ts'
import { fillPath, fillTemplate, pick } from './third-party-format.ts'

const TOKEN = /^[!-~]{14,255}$/
const BYTES_MAX = 64 * 1024

type Endpoint = 'create' | 'find' | 'delete'

export function openThirdParty(
  outbound: Outbound,
  caller: Caller,
  settings: ThirdPartySettings,
  log: Logger,
): SchemeProvider {
  const { format, credentials } = settings
  const name = `third-party ${settings.contract}`

  async function ask(
    endpoint: Endpoint,
    values: { id: string; token?: string },
    body: unknown,
    urgency: Urgency,
  ): Promise<{ answer: OutboundAnswer; json: unknown } | { failed: ProviderAnswer<never> }> {
    const { method, path } = format[endpoint]
    const called = await caller.call(urgency, () =>
      outbound.request(settings.baseUrl + fillPath(path, values), {
        method,
        headers: {
          accept: 'application/json',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(endpoint === 'create' ? { [format.idempotencyHeader]: values.id } : {}),
          ...(credentials === undefined ? {} : { [credentials.header]: credentials.value.reveal() }),
        },
        body: body === undefined ? undefined : JSON.stringify(body),
        timeoutMs: settings.timeoutMs,
        bytesMax: BYTES_MAX,
      }),
    )
    if (called.called === 'kept') return { failed: { answer: 'again', once: false, afterMs: called.afterMs } }
    if (called.called === 'failed')
      return {
        failed: called.sent && endpoint === 'create' ? { answer: 'unknown' } : { answer: 'again', once: false },
      }
    return { answer: called.answer, json: readJson(called.answer) }
  }

  /** What an error answer means: the configured code decides, else the HTTP status. */
  function failureOf(answer: OutboundAnswer, json: unknown, endpoint: Endpoint): ProviderAnswer<never> {
    const afterMs = retryAfterMs(answer)
    const code = pick(json, format.error)
    const meaning = typeof code === 'string' && Object.hasOwn(format.errors, code) ? format.errors[code] : undefined
    if (meaning === 'again' || meaning === 'once') return { answer: 'again', once: meaning === 'once', afterMs }
    if (meaning !== undefined) return { answer: 'refused', reason: meaning }
    const { status } = answer
    // The third party may still be working on the first call with this id.
    if (endpoint === 'create' && (status === 408 || status === 409 || status === 425)) return { answer: 'unknown' }
    if (status === 429 || status === 401 || status === 403 || status === 503)
      return { answer: 'again', once: false, afterMs }
    if (status >= 400 && status < 500) return { answer: 'refused', reason: 'request_invalid' }
    return endpoint === 'create' ? { answer: 'unknown' } : { answer: 'again', once: false, afterMs }
  }

  function unreadable(endpoint: Endpoint): void {
    log.error({ provider: name, endpoint }, 'the token of a third party could not be read; see its format')
  }

  /** What stands before the third party answered, not the third party: a page for people, with status 200. */
  function otherPage(endpoint: Endpoint): ProviderAnswer<never> {
    unreadable(endpoint)
    return { answer: 'again', once: false }
  }

  /**
   * Reads the third party's token; undefined if it isn't usable. Callers will name the card by this token, so it must
   * not look like a card number or like one of our own tokens.
   */
  function read(json: unknown, pan: Secret | undefined): ProviderToken | undefined {
    const token = pick(json, format.token)
    if (typeof token !== 'string' || !TOKEN.test(token) || parseReuseToken(token) !== undefined) return undefined
    if (numbersIn(token).some(number => panFault(withoutPadding(number)) === undefined)) return undefined
    return pan && holdsPan(token, pan.reveal()) ? undefined : { ...PLAIN, reference: token }
  }

  async function find(
    id: string,
    pan: Secret | undefined,
    urgency: Urgency,
  ): Promise<ProviderAnswer<ProviderToken | undefined>> {
    const reply = await ask('find', { id }, undefined, urgency)
    if ('failed' in reply) return reply.failed
    if (reply.answer.status === 404) return { answer: 'done', value: undefined }
    if (!isSuccess(reply.answer)) {
      const failure = failureOf(reply.answer, reply.json, 'find')
      // A refused search says nothing about the token, so it is repeated once.
      return failure.answer === 'refused' ? { answer: 'again', once: true } : failure
    }
    if (!isReadable(reply)) return otherPage('find')
    const found = pick(reply.json, format.found)
    // An empty list or an empty answer means that the third party doesn't know the id.
    if (found === undefined || found === null) return { answer: 'done', value: undefined }
    const token = read(found, pan)
    if (token) return { answer: 'done', value: token }
    unreadable('find')
    return { answer: 'again', once: true }
  }

  return {
    name,
    provision: async (id, card, urgency) => {
      const pan = card.pan.reveal()
      const body = fillTemplate(format.body, {
        id,
        pan,
        expiry_month: String(card.expiryMonth).padStart(2, '0'),
        expiry_year: String(card.expiryYear),
        expiry_yy: String(card.expiryYear % 100).padStart(2, '0'),
        card_holder_name: card.cardHolderName,
      })
      const reply = await ask('create', { id }, body, urgency)
      if ('failed' in reply) return reply.failed
      if (!isSuccess(reply.answer)) return failureOf(reply.answer, reply.json, 'create')
      const token = read(reply.json, card.pan)
      if (token) return { answer: 'done', value: token }
      unreadable('create')
      return { answer: 'unknown' }
    },
    find: (id, { card }, urgency) => find(id, card?.pan, urgency),
    get: async (id, reference, urgency) => {
      const found = await find(id, undefined, urgency)
      if (found.answer !== 'done') return found
      return found.value?.reference === reference
        ? { answer: 'done', value: found.value }
        : { answer: 'refused', reason: 'token_unknown' }
    },
    delete: async (id, token, urgency) => {
      const reply = await ask('delete', { id, token }, undefined, urgency)
      if ('failed' in reply) return reply.failed
      if (isSuccess(reply.answer) && isMarkup(reply.answer)) return otherPage('delete')
      const gone = isSuccess(reply.answer) || reply.answer.status === 404 || reply.answer.status === 410
      const value: ProviderToken = { ...PLAIN, reference: token, state: 'DEACTIVATED' }
      return gone ? { answer: 'done', value } : failureOf(reply.answer, reply.json, 'delete')
    },
    suspend: async () => STATELESS,
    resume: async () => STATELESS,
    close: async () => caller.close(),
  }
}

const STATELESS = { answer: 'refused', reason: 'token_state' } as const
const PLAIN = {
  state: 'ACTIVE',
  suspendedBy: [],
  number: undefined,
  expiryMonth: undefined,
  expiryYear: undefined,
  par: undefined,
} as const satisfies Omit<ProviderToken, 'reference'>

/** An empty body may say that there is nothing. */
const isReadable = ({ answer, json }: { answer: OutboundAnswer; json: unknown }) =>
  json !== undefined || answer.body.toString('utf8').trim() === ''

const isMarkup = ({ body }: OutboundAnswer) => /^\s*<(!doctype|html)/i.test(body.toString('utf8'))

const isSuccess = ({ status }: OutboundAnswer) => status >= 200 && status < 300

function readJson({ body }: OutboundAnswer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown
  } catch {
    return undefined
  }
}
