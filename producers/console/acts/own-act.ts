// Acts of a person on what is the person's own: how one is begun, and how one is sent with its touch. Their pages are of their own.
import { z } from 'zod'
import { type ActName, Assertion } from '../../../src/job/system/act.ts'
import * as pendingActs from '../../../src/store/console/pending-acts.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import type { ConsoleDeps } from '../deps.ts'
import { readProof } from '../session/proof.ts'
import { beginAct, type Unproved } from './request.ts'
import { settleAct } from './settle.ts'

export const LATE = 'The passkey came too late, or this was sent before. Nothing was done.'

const Form = z.object({ nonce: z.string().max(64), proof: z.string().max(16_000) })

export function beginOwnAct(
  deps: ConsoleDeps,
  { personId, sessionHash }: LiveSession,
  act: ActName,
  parameters: Record<string, string>,
): Promise<Unproved> {
  const about = { subject: personId, parameters, seen: null, reason: null, person_id: personId }
  return beginAct(deps, { act, ...about }, { sessionHash, batchNo: null })
}

export interface SentOwnAct {
  act: Unproved['act']
  nonce: string
  /** Undefined: it isn't here yet. */
  verdict: pendingActs.Verdict | undefined
  /** The passkey that was touched. */
  credentialId: string
}

/** Undefined: it wasn't sent. */
export async function sendOwnAct(
  deps: ConsoleDeps,
  { sessionHash }: LiveSession,
  body: unknown,
): Promise<SentOwnAct | undefined> {
  const form = Form.safeParse(body).data
  const proof = readProof(form?.proof, Assertion)
  const pending = form && proof && (await pendingActs.take(deps.store, form.nonce, sessionHash))
  if (!pending || !proof) return undefined
  const request = pending.request as Unproved
  const verdict = await settleAct(deps, request, proof)
  return { act: request.act, nonce: pending.nonce, verdict, credentialId: proof.credential_id }
}
