// The page of an act on a batch: what will happen, counted, a reason, and a button that says it. With a passkey, the module
// passkey.js first asks `begin` for the challenge and then sends the form with the proof; a session by the link of `start`
// sends the form alone.
import { z } from 'zod'
import { Assertion } from '../../../src/job/system/act.ts'
import { seenOf, stateOf } from '../../../src/store/batch/batch-state.ts'
import * as pendingActs from '../../../src/store/console/pending-acts.ts'
import type { SeenBatch } from '../../../src/store/console/seen-batches.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import * as signingIn from '../../../src/store/console/signing-in.ts'
import { holdsPossiblePan } from '../../../src/token/possible-pan.ts'
import { challengeOf } from '../../../src/vault/passkey/challenge.ts'
import { beginAct, type Intended, type Unproved } from '../acts/request.ts'
import { settleAct } from '../acts/settle.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, id } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, refusedPage, sendPage } from '../server/page.ts'
import { readProof } from '../session/proof.ts'
import { TOUCH_MS } from '../session/sign-in.ts'
import { BATCH_ACTS, type BatchActName, isBatchAct, leftOf, mayDo, possibleIn } from './acts.ts'
import { batchOf, progress } from './batch.ts'
import { stateMark } from './state-mark.ts'

const REASON_MAX = 500
const Form = z.object({
  reason: z.string().max(REASON_MAX).default(''),
  seen: z.string().max(64),
  nonce: z.string().max(64).optional(),
  proof: z.string().max(16_000).optional(),
})

type Asked = { Params: { no: string; act: string } }

export function batchActRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const { store } = deps

  app.get<Asked>('/batches/:no/:act', async (request, reply) => {
    const session = sessionOf(request)
    const { act } = request.params
    const batch = isBatchAct(act) ? await batchOf(deps, session, request.params.no) : undefined
    if (!batch || !isBatchAct(act)) return sendPage(reply, 404, missingPage(deps, session))
    if (!mayDo(act, session)) return sendPage(reply, 403, refusedPage(deps, deniedTo(act), session))
    return sendPage(reply, 200, actPage(deps, { batch, act, session }))
  })

  app.post<Asked>('/batches/:no/:act/begin', async (request, reply) => {
    const session = sessionOf(request)
    const intended = await intend(deps, session, request.params, request.body)
    if ('status' in intended) return reply.code(intended.status).send({ text: intended.text })
    const begun = await beginAct(deps, intended, {
      sessionHash: session.sessionHash,
      batchNo: Number(request.params.no),
    })
    const known = await signingIn.listKeysOf(store, session.personId)
    const challenge = challengeOf(begun, deps.installationId).toString('base64url')
    const get = { challenge, rpId: deps.site().rpId, userVerification: 'required', timeout: TOUCH_MS }
    return { nonce: begun.nonce, get: { ...get, allowCredentials: known } }
  })

  app.post<Asked>('/batches/:no/:act', async (request, reply) => {
    const session = sessionOf(request)
    const form = Form.safeParse(request.body).data
    const proof = readProof(form?.proof, Assertion)
    const again = async (status: number, text: string) => {
      const { act, no } = request.params
      const batch = isBatchAct(act) ? await batchOf(deps, session, no) : undefined
      if (!batch || !isBatchAct(act)) return sendPage(reply, 404, missingPage(deps, session))
      return sendPage(reply, status, actPage(deps, { batch, act, session, wrong: text, reason: form?.reason }))
    }
    if (proof === undefined && !session.isLocal) return again(403, 'This needs your passkey, and so scripts.')
    if (proof === undefined) {
      const intended = await intend(deps, session, request.params, request.body)
      if ('status' in intended) return again(intended.status, intended.text)
      const begun = await beginAct(deps, intended, {
        sessionHash: session.sessionHash,
        batchNo: Number(request.params.no),
      })
      await pendingActs.take(store, begun.nonce, session.sessionHash)
      await settleAct(deps, begun, null)
      return reply.redirect(path`/acts/${begun.nonce}`.text, 303)
    }
    const pending = await pendingActs.take(store, form?.nonce ?? '', session.sessionHash)
    if (!pending) return again(403, 'The passkey came too late, or this was sent before. Nothing was done.')
    await settleAct(deps, pending.request as Unproved, proof)
    return reply.redirect(path`/acts/${pending.nonce}`.text, 303)
  })
}

interface Denied {
  status: 400 | 403 | 404
  text: string
}

const MISSING: Denied = { status: 404, text: 'There is no such page, or it is not yours to see.' }

/** The act that the person means, or why it isn't even begun. */
async function intend(
  deps: Pick<ConsoleDeps, 'store'>,
  session: LiveSession,
  { no, act }: Asked['Params'],
  body: unknown,
): Promise<Intended | Denied> {
  const batch = isBatchAct(act) ? await batchOf(deps, session, no) : undefined
  if (!batch || !isBatchAct(act)) return MISSING
  if (!mayDo(act, session)) return { status: 403, text: deniedTo(act) }
  const form = Form.safeParse(body).data
  if (!form) return { status: 400, text: `The reason has more than ${REASON_MAX} characters.` }
  // The audit keeps a reason as one line.
  const reason = form.reason.replace(/\s+/g, ' ').trim()
  if (holdsPossiblePan(reason))
    return { status: 400, text: 'The reason holds digits that could be a card number. Write it without them.' }
  return {
    act: BATCH_ACTS[act].act,
    subject: batch.batchId,
    parameters: { client_id: batch.clientId },
    seen: form.seen,
    reason: reason === '' ? null : reason,
    person_id: session.personId,
  }
}

const deniedTo = (act: BatchActName) =>
  `Your roles do not permit this: ${BATCH_ACTS[act].roles.join(' or ')} may ${BATCH_ACTS[act].verb.toLowerCase()} a batch.`

interface Shown {
  batch: SeenBatch
  act: BatchActName
  session: LiveSession
  wrong?: string
  reason?: string | undefined
}

function actPage(deps: ConsoleDeps, { batch, act, session, wrong, reason = '' }: Shown): Html {
  const { verb, effect } = BATCH_ACTS[act]
  const state = stateOf(batch, deps.clock())
  const left = leftOf(batch)
  const title = `${verb} a batch`
  const to = path`/batches/${batch.batchNo}/${act}`
  const fields = html`<input type="hidden" name="seen" value="${seenOf(batch)}">
<label for="reason">Why? It is written into the audit, for everybody who reads it. No card numbers, no names of cardholders.</label>
<textarea id="reason" name="reason" maxlength="${REASON_MAX}" rows="3">${reason}</textarea>
<button class="main${act === 'cancel' ? ' danger' : ''}" type="submit">${verb} ${left}</button>
<a class="button" href="${path`/batches/${batch.batchNo}`}">Leave it</a>
<p data-status="" role="status"></p>`
  const form = session.isLocal
    ? html`<form class="act" method="post" action="${to}">${fields}</form>
<p class="same">You came by the link of <code>tokenmill start</code>: this needs no passkey, and the audit says that it is not proved.</p>`
    : html`<form class="act" method="post" action="${to}" data-begin="${to.text}/begin">
<input type="hidden" name="nonce" value=""><input type="hidden" name="proof" value="">${fields}</form>
<p class="same">Your passkey signs exactly this: the act, the batch and the reason. A worker checks it before anything happens.</p>
<noscript><p>This needs scripts: a browser uses a passkey for a script only.</p></noscript>`
  const content = html`<p class="up"><a href="${path`/batches/${batch.batchNo}`}">Back to the batch</a></p>
<h1>${title}</h1>
${wrong === undefined ? undefined : html`<p class="verdict refused" role="alert">${wrong}</p>`}
<p>${id(batch.batchId)} ${stateMark(state)}</p>
${progress(batch)}
${possibleIn(act, batch, state) ? html`<p class="effect">${sentence(effect(left))}</p>${form}` : html`<p class="effect">It is ${state}, so there is nothing to ${verb.toLowerCase()}.</p>`}
<p class="same">The same on the command line: ${command('tokenmill', 'batch', act, batch.batchId, '--client', batch.clientId)}</p>`
  return framed(deps, {
    title,
    session,
    at: 'batches',
    usesPasskey: !session.isLocal && possibleIn(act, batch, state),
    content,
  })
}

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
