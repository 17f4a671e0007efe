// The page of a link with a secret in its fragment: an invite, which ends in a passkey, or on the embedded engine the link
// of `start`, which signs in by itself. The secret stays in the browser. What comes here is a value derived from it, by which
// the link is found, and for an invite a signature that only a worker can judge.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { Enrolment } from '../../../src/job/system/act.ts'
import * as challenges from '../../../src/store/console/challenges.ts'
import * as pendingActs from '../../../src/store/console/pending-acts.ts'
import * as signingIn from '../../../src/store/console/signing-in.ts'
import { challengeOf } from '../../../src/vault/passkey/challenge.ts'
import { hashOfLookup } from '../../../src/vault/passkey/invite-key.ts'
import { beginAct, type Unproved } from '../acts/request.ts'
import { settleAct, verdictAt } from '../acts/settle.ts'
import { type ConsoleApp, OPEN } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { framed, missingPage, refusedPage, sendPage } from '../server/page.ts'
import { openAttempts } from '../session/attempts.ts'
import { beginSession } from '../session/begin-session.ts'
import { readProof } from '../session/proof.ts'
import { TOO_MANY } from '../session/sign-in.ts'
import { creationOf } from './creation.ts'

const Lookup = z.object({ lookup: z.string().length(43) })
const Form = z.object({ proof: z.string().max(32_000), nonce: z.string().max(64) })
const USELESS = 'This link does not work any more: it was used, or it is too old. Ask for a new one.'
const NO_COMMAND = html`<p class="same">No command does this: a browser alone makes a passkey. An administrator makes the link: ${command('tokenmill', 'person', 'invite', 'NAME', '--roles', 'VIEWER')}</p>`

export function welcomeRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const { store } = deps
  const { isTooManyFailed } = openAttempts(app)

  app.get('/welcome', OPEN, async (_request, reply) => sendPage(reply, 200, welcomePage(deps)))

  /** Where an enrolment waits whose verdict comes late. */
  app.get<{ Params: { nonce: string } }>('/welcome/:nonce', OPEN, async (request, reply) => {
    const act = await pendingActs.findSentEnrolment(store, request.params.nonce)
    if (!act) return sendPage(reply, 404, missingPage(deps, null))
    const verdict = verdictAt(act, deps.clock())
    if (verdict === null) return sendPage(reply, 200, waitingPage(deps))
    const wrong = wrongWith(verdict)
    if (wrong === undefined) return reply.redirect('/sign-in?enrolled=', 303)
    return sendPage(reply, 200, refusedPage(deps, wrong, null, 'Welcome'))
  })

  app.post('/welcome/begin', OPEN, async (request, reply) => {
    const lookupHash = hashOfLookup(Lookup.safeParse(request.body).data?.lookup ?? '')
    if (deps.isEmbedded && (await challenges.isStartLink(store, lookupHash))) return {}
    const invite = await signingIn.findInvite(store, lookupHash)
    if (invite) return beginEnrolment(deps, invite)
    if (await isTooManyFailed(request)) return reply.code(429).send({ text: TOO_MANY })
    return reply.code(403).send({ text: USELESS })
  })

  app.post('/welcome', OPEN, async (request, reply) => {
    const refused = async (text: string) => {
      const isTooMany = await isTooManyFailed(request)
      return sendPage(reply, isTooMany ? 429 : 403, welcomePage(deps, isTooMany ? TOO_MANY : text))
    }
    const form = Form.safeParse(request.body).data
    if (form?.nonce === '') {
      const lookupHash = hashOfLookup(readProof(form.proof, Lookup)?.lookup ?? '')
      const personId = deps.isEmbedded ? await challenges.useStartLink(store, lookupHash) : undefined
      if (personId === undefined) return refused(USELESS)
      await beginSession(deps, request, reply, { personId, credentialId: null, isLocal: true })
      return reply.redirect('/now', 303)
    }
    const proof = readProof(form?.proof, Enrolment)
    const pending = form && proof && (await pendingActs.take(store, form.nonce, null))
    if (!pending || !proof) return refused('The passkey came too late. Open the link again.')
    const verdict = await settleAct(deps, pending.request as Unproved, proof)
    if (verdict === undefined) return reply.redirect(path`/welcome/${pending.nonce}`.text, 303)
    const wrong = wrongWith(verdict)
    if (wrong === undefined) return reply.redirect('/sign-in?enrolled=', 303)
    return sendPage(reply, 403, welcomePage(deps, wrong))
  })
}

/** What there is to say of an enrolment that isn't done. */
function wrongWith(verdict: pendingActs.Verdict): string | undefined {
  if (verdict.done === null)
    return 'It is not known whether you are enrolled. Try to sign in; if that fails, open the link again.'
  return verdict.done ? undefined : verdict.text
}

/** What the browser needs for a new passkey. The challenge is the act that a worker will check. */
async function beginEnrolment(deps: ConsoleDeps, { inviteId, name, personId }: signingIn.OpenInvite): Promise<object> {
  const intended = { act: 'person.enrol', subject: inviteId, parameters: {}, seen: null, reason: null } as const
  const request = await beginAct(
    deps,
    { ...intended, person_id: personId ?? randomUUID() },
    { sessionHash: null, batchNo: null },
  )
  const challenge = challengeOf(request, deps.installationId)
  return {
    nonce: request.nonce,
    create: creationOf(deps, { personId: request.person_id, name, challenge, known: [] }),
  }
}

function waitingPage(deps: Pick<ConsoleDeps, 'name' | 'environment'>): Html {
  const content = html`<h1>Welcome</h1>
<p role="status">No worker has answered yet. This page asks again by itself.</p>
${NO_COMMAND}`
  return framed(deps, { title: 'Welcome', session: null, isWaiting: true, content })
}

function welcomePage(deps: Pick<ConsoleDeps, 'name' | 'environment'>, wrong?: string): Html {
  const content = html`<h1>Welcome</h1>
${wrong === undefined ? undefined : html`<p class="verdict refused" role="alert">${wrong}</p>`}
<p>This link lets you into the console of <strong>${deps.name}</strong>. An invite ends with a passkey: your device keeps it, and you prove with it who you are and what you decide. The link works once.</p>
<form class="act" method="post" action="/welcome" data-begin="/welcome/begin" data-secret="">
<input type="hidden" name="nonce" value="">
<input type="hidden" name="proof" value="">
<button class="main" type="submit" disabled="">Continue</button>
<p data-status="" role="status"></p>
</form>
<noscript><p>Enrolling needs scripts: a browser makes a passkey for a script only.</p></noscript>
${NO_COMMAND}`
  return framed(deps, { title: 'Welcome', session: null, usesPasskey: true, content })
}
