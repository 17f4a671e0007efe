// A simple third-party tokeniser: makes a token for a card under the caller's reference, finds the token by that
// reference, deletes it. A repeat with the same reference and card gets the same token, even if the first answer was
// lost.
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { type Outcome, outcomeOf } from './outcomes.ts'
import type { SimulatorState } from './state.ts'

const Create = z.object({
  reference: z.string().min(1).max(128),
  card: z.object({
    number: z.string().regex(/^\d{12,19}$/),
    expiryMonth: z.string().regex(/^(0[1-9]|1[0-2])$/),
    expiryYear: z.string().regex(/^\d{4}$/),
    holderName: z.string().max(64).optional(),
  }),
})

/** The simulated MDES errors → the error codes of this provider. */
const CODES: Record<string, string> = {
  PAN_INELIGIBLE: 'card_not_eligible',
  PAN_INELIGIBLE_FOR_DEVICE: 'card_not_eligible',
  TOKENIZATION_INELIGIBLE: 'card_not_eligible',
  CARD_NOT_ALLOWED: 'card_not_eligible',
  INVALID_PAN: 'card_invalid',
  INVALID_FIELD_FORMAT: 'card_invalid',
  INVALID_FIELD_VALUE: 'card_invalid',
  NO_RESPONSE_FROM_ISSUER: 'try_again',
}

export function registerThirdParty(server: FastifyInstance, state: SimulatorState): void {
  const { journal, security, keys } = state
  const failure = (code: string) => ({ error: { code } })
  const seen = new Set<string>()

  server.addHook('onRequest', async (request, reply) => {
    if (!request.url.startsWith('/third-party/')) return
    const given = Buffer.from(request.headers.authorization ?? '')
    const expected = Buffer.from(`Bearer ${keys.thirdPartyToken}`)
    if (given.length === expected.length && timingSafeEqual(given, expected)) return
    state.count('unauthorized')
    return reply.code(401).send(failure('unauthorized'))
  })

  server.post('/third-party/tokens', async (request, reply) => {
    state.count('third-party create')
    const asked = Create.safeParse(parse(request.body)).data
    if (asked === undefined || request.headers['idempotency-key'] !== asked.reference)
      return reply.code(400).send(failure('request_invalid'))
    const { reference, card } = asked
    const fingerprint = security.fingerprint(card.number)
    const known = journal.externals.get(reference)
    if (known !== undefined) {
      state.count('third-party repeats')
      if (known.card !== fingerprint || known.deleted) return reply.code(409).send(failure('reference_taken'))
      return { token: known.token, reference }
    }
    const outcome = outcomeOf(card.number)
    const first = !seen.has(reference)
    seen.add(reference)
    if (first && outcome.way === 'hang_before_once') return reply.hijack()
    if (first && outcome.way === 'busy_once') return reply.code(503).send(failure('try_again'))
    const refused = refusalOf(outcome)
    if (refused) return reply.code(refused.status).send(failure(refused.code))
    const token = `ext_${randomBytes(16).toString('hex')}`
    await journal.record({
      external: { token, reference, card: fingerprint, lastFour: card.number.slice(-4), deleted: false },
    })
    if (outcome.way === 'hang_after') return reply.hijack()
    return reply.code(201).send({ token, reference })
  })

  server.get('/third-party/tokens', async (request, reply) => {
    state.count('third-party find')
    const { reference } = request.query as { reference?: string }
    const known = journal.externals.get(reference ?? '')
    if (known === undefined || known.deleted) return reply.code(404).send(failure('unknown'))
    return { token: known.token, reference: known.reference }
  })

  server.delete('/third-party/tokens/:token', async (request, reply) => {
    state.count('third-party delete')
    const { token } = request.params as { token: string }
    const known = [...journal.externals.values()].find(one => one.token === token)
    if (known === undefined) return reply.code(404).send(failure('unknown'))
    await journal.record({ external: { ...known, deleted: true } })
    return reply.code(204).send()
  })
}

function refusalOf({ decision, error }: Outcome): { status: number; code: string } | undefined {
  if (decision === 'DECLINED') return { status: 402, code: 'card_declined' }
  return error === undefined ? undefined : { status: 422, code: CODES[error] ?? error }
}

function parse(body: unknown): unknown {
  try {
    return JSON.parse(String(body)) as unknown
  } catch {
    return undefined
  }
}
