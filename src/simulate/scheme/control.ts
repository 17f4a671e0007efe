// The control interface of the simulator for rehearsals: counters, the tokens, and actions of issuers. Its paths begin
// with /_simulator and need no credentials, because the simulator is for rehearsals and listens on this machine by
// default.
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { change } from './change.ts'
import type { SimulatedToken } from './journal.ts'
import type { SimulatorState } from './state.ts'

const Deed = z.strictObject({
  do: z.enum(['suspend', 'resume', 'delete', 'activate', 'expiry', 'notify']),
  by: z.enum(['ISSUER', 'TOKEN_REQUESTOR', 'CARDHOLDER', 'MOBILE_PIN_LOCKED']).default('ISSUER'),
  /** MMYY, for `expiry`. */
  expiry: z
    .string()
    .regex(/^(0[1-9]|1[0-2])\d\d$/)
    .optional(),
  /** If false, the requestor gets no notification, so its store becomes outdated. */
  notify: z.boolean().default(true),
  /** How often the same notification is sent. */
  times: z.number().int().min(1).max(10).default(1),
})
const Notifications = z.strictObject({ url: z.url({ protocol: /^https?$/ }).nullable() })

export function registerControl(server: FastifyInstance, state: SimulatorState): void {
  const { journal } = state

  server.get('/_simulator/stats', async () => {
    const tokens = [...journal.tokens.values()]
    const live = tokens.filter(({ state }) => state !== 'DEACTIVATED')
    const externals = [...journal.externals.values()]
    return {
      counts: state.counts(),
      tokens: { all: tokens.length, live: live.length },
      // Always 0, because a task makes one token; rehearsals check this.
      tasksWithSeveralTokens: severals(tokens.map(({ taskId }) => taskId)),
      // How many cards have live tokens of several tasks, for example because a lost call was repeated under a new id.
      cardsWithSeveralLiveTokens: severals(live.map(({ card }) => card)),
      thirdParty: {
        all: externals.length,
        live: externals.filter(({ deleted }) => !deleted).length,
        cardsWithSeveralLiveTokens: severals(externals.filter(({ deleted }) => !deleted).map(({ card }) => card)),
      },
      packageDisagreements: state.security.disagreements(),
    }
  })

  server.get('/_simulator/tokens', async () => ({
    tokens: [...journal.tokens.values()].map(({ number, ...token }) => ({
      ...token,
      numberLastFour: number.slice(-4),
    })),
    thirdParty: [...journal.externals.values()],
  }))

  server.post('/_simulator/tokens/:reference', async (request, reply) => {
    const { reference } = request.params as { reference: string }
    const token = journal.tokens.get(reference)
    if (token === undefined) return reply.code(404).send({ error: 'no such token' })
    const deed = Deed.safeParse(JSON.parse(String(request.body)))
    if (!deed.success) return reply.code(400).send({ error: deed.error.issues[0]?.message })
    const after = perform(token, deed.data)
    if (after === undefined) return reply.code(409).send({ error: 'its state does not permit that' })
    if (after !== token) await journal.record({ token: after })
    if (deed.data.notify) await state.notify(after, reasonOf(deed.data.do), deed.data.times)
    return { reference, state: after.state, suspendedBy: after.suspendedBy }
  })

  server.post('/_simulator/notifications', async (request, reply) => {
    const parsed = Notifications.safeParse(JSON.parse(String(request.body)))
    if (!parsed.success) return reply.code(400).send({ error: parsed.error.issues[0]?.message })
    state.notifyUrl = parsed.data.url ?? undefined
    return { url: parsed.data.url }
  })
}

function perform(token: SimulatedToken, deed: z.infer<typeof Deed>): SimulatedToken | undefined {
  if (deed.do === 'notify') return token
  const now = Date.now()
  if (deed.do !== 'expiry') return change(token, deed.do, deed.by, now)
  return token.state === 'DEACTIVATED' ? undefined : { ...token, expiry: deed.expiry ?? token.expiry, at: now }
}

function reasonOf(deed: z.infer<typeof Deed>['do']): string {
  const reasons = {
    suspend: 'SUSPECTED_FRAUD',
    resume: 'NOT_FRAUD',
    delete: 'ACCOUNT_CLOSED',
    expiry: 'REDIGITIZATION_COMPLETE',
  }
  return Object.hasOwn(reasons, deed) ? reasons[deed as keyof typeof reasons] : 'OTHER'
}

/** How many different values occur more than once. */
function severals(values: readonly string[]): number {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts.values()].filter(count => count > 1).length
}
