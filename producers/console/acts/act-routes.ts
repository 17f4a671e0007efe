// The routes of an act on any subject. With a passkey, the module passkey.js first asks `begin` for the challenge and then
// sends the form with the proof; a session by the link of `start` sends the form alone.
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { Assertion, rowOf } from '../../../src/job/system/act.ts'
import * as pendingActs from '../../../src/store/console/pending-acts.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import * as signingIn from '../../../src/store/console/signing-in.ts'
import { holdsPossiblePan } from '../../../src/token/possible-pan.ts'
import { challengeOf } from '../../../src/vault/passkey/challenge.ts'
import type { ConsoleRoutes } from '../app.ts'
import { path } from '../html.ts'
import { sessionOf } from '../server/guard.ts'
import { missingPage, refusedPage, sendPage } from '../server/page.ts'
import { readProof } from '../session/proof.ts'
import { TOUCH_MS } from '../session/sign-in.ts'
import { actPage, REASON_MAX } from './act-page.ts'
import { canAct, NO_PASSKEY } from './no-passkey.ts'
import { beginAct, type Intended, type Unproved } from './request.ts'
import { settleAct } from './settle.ts'
import { type ActSubject, type Asked, type Asking, mayDo, type ShownAct } from './subject.ts'

const Form = z.object({
  reason: z.string().max(REASON_MAX).default(''),
  seen: z.string().max(64),
  nonce: z.string().max(64).optional(),
  proof: z.string().max(16_000).optional(),
})

export function actRoutes(subject: ActSubject): ConsoleRoutes {
  return (app, deps) => {
    const { store } = deps
    const { route } = subject

    app.get(route, async (request, reply) => {
      const session = sessionOf(request)
      const act = await subject.show({ deps, session, asked: askedOf(request, subject.takesQuery && request.query) })
      if (!act) return sendPage(reply, 404, missingPage(deps, session))
      if (!mayDo(act.act, session)) return sendPage(reply, 403, refusedPage(deps, deniedTo(subject, act), session))
      return sendPage(reply, 200, actPage(deps, subject, act, { session, canAct: await canAct(deps, session) }))
    })

    app.post(`${route}/begin`, async (request, reply) => {
      const session = sessionOf(request)
      const intended = await intend(subject, { deps, session, asked: askedOf(request, request.body) })
      if ('status' in intended) return reply.code(intended.status).send({ text: intended.text })
      if (!(await canAct(deps, session))) return reply.code(403).send({ text: NO_PASSKEY })
      const begun = await begin(intended, session)
      const known = await signingIn.listKeysOf(store, session.personId)
      const challenge = challengeOf(begun, deps.installationId).toString('base64url')
      const get = { challenge, rpId: deps.site().rpId, userVerification: 'required', timeout: TOUCH_MS }
      return { nonce: begun.nonce, get: { ...get, allowCredentials: known } }
    })

    app.post(route, async (request, reply) => {
      const session = sessionOf(request)
      const asking = { deps, session, asked: askedOf(request, request.body) }
      const form = Form.safeParse(request.body).data
      const proof = readProof(form?.proof, Assertion)
      const again = async (status: number, text: string) => {
        const act = await subject.show(asking)
        if (!act) return sendPage(reply, 404, missingPage(deps, session))
        const filled = { session, canAct: await canAct(deps, session), wrong: text, reason: form?.reason }
        return sendPage(reply, status, actPage(deps, subject, act, filled))
      }
      if (proof === undefined && !session.isLocal) return again(403, 'This needs your passkey, and so scripts.')
      if (proof === undefined) {
        const intended = await intend(subject, asking)
        if ('status' in intended) return again(intended.status, intended.text)
        const begun = await begin(intended, session)
        await pendingActs.take(store, begun.nonce, session.sessionHash)
        await settleAct(deps, begun, null)
        return reply.redirect(path`/acts/${begun.nonce}`.text, 303)
      }
      const pending = await pendingActs.take(store, form?.nonce ?? '', session.sessionHash)
      if (!pending) return again(403, 'The passkey came too late, or this was sent before. Nothing was done.')
      await settleAct(deps, pending.request as Unproved, proof)
      return reply.redirect(path`/acts/${pending.nonce}`.text, 303)
    })

    const begin = ({ intended, batchNo }: Begun, { sessionHash }: LiveSession) =>
      beginAct(deps, intended, { sessionHash, batchNo })
  }
}

interface Begun {
  intended: Intended
  batchNo: number | null
}

interface Denied {
  status: 400 | 403 | 404
  text: string
}

const MISSING: Denied = { status: 404, text: 'There is no such page, or it is not yours to see.' }

/** The act that the person means, or why it isn't even begun. */
async function intend(subject: ActSubject, asking: Asking): Promise<Begun | Denied> {
  const { session, asked } = asking
  const act = await subject.sign(asking)
  if (!act) return MISSING
  if (!mayDo(act.act, session)) return { status: 403, text: deniedTo(subject, act) }
  if ('wrong' in act) return { status: 400, text: act.wrong }
  const { batchNo, subject: name, parameters } = act
  const form = Form.safeParse(asked.given).data
  if (!form) return { status: 400, text: `The reason has more than ${REASON_MAX} characters.` }
  // The audit keeps a reason as one line.
  const reason = form.reason.replace(/\s+/g, ' ').trim()
  if (holdsPossiblePan(reason))
    return { status: 400, text: 'The reason holds digits that could be a card number. Write it without them.' }
  if (reason === '' && rowOf(act.act).asks !== undefined)
    return { status: 400, text: 'There is no text yet. Write it first.' }
  const seen = form.seen === '' ? null : form.seen
  const said = { seen, reason: reason === '' ? null : reason, person_id: session.personId }
  return { intended: { act: act.act, subject: name, parameters, ...said }, batchNo }
}

function deniedTo(subject: Pick<ActSubject, 'noun'>, { act }: Pick<ShownAct, 'act'>): string {
  const { roles, verb, noun } = rowOf(act)
  return `Your roles do not permit this: ${roles.join(' or ')} may ${verb.toLowerCase()} ${subject.noun ?? noun}.`
}

function askedOf({ params }: Pick<FastifyRequest, 'params'>, given: unknown): Asked {
  const isObject = typeof given === 'object' && given !== null
  return { params: params as Asked['params'], given: isObject ? (given as Asked['given']) : {} }
}
