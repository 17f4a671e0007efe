// A job that ends badly although it may have done something outside: it leaves a receipt that says REQUIRED, and its
// reversal is queued. One that did nothing outside leaves nothing, and its jti stays free.
import { isRefusal, REASONS, type Refusal } from '../../src/errors.ts'
import { CATALOGUE } from '../../src/job/catalogue.ts'
import { requestText } from '../../src/job/envelope/digest.ts'
import { fieldsOf } from '../../src/job/problem.ts'
import type { Receipt } from '../../src/store/job/receipts.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import type { Db } from '../../src/store/pool.ts'
import { hold } from '../../src/store/pool.ts'
import * as intents from '../../src/store/provider/scheme-intents.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { Deps } from '../deps.ts'
import { withoutOwnCard } from '../line/pan-in-names.ts'
import { tell } from '../line/result-text.ts'
import type { Decision, Work } from '../line/work.ts'
import { queueReversal } from './queue-reversal.ts'

/** True where it did: the caller is told. */
export async function settleOwed(work: Work<unknown>, refusal: Refusal, deps: Deps): Promise<boolean> {
  const { kind } = work.claims
  if (!deps.outside || !speaksOutside(work)) return false
  const receipt = await receiptOf(work, refusal, deps)
  const written = await deps.store.transaction(async db => {
    await hold(db, work.receiptId)
    const owed = await owedOf(db, work.receiptId, deps)
    if (owed.length === 0 || (await receipts.find(db, work.receiptId)) !== undefined) return undefined
    await intents.owe(db, owed, deps.clock())
    return receipts.insert(db, receipt)
  })
  if (!written) return false
  deps.metrics.receipts.inc({ kind, status: receipt.status })
  const { outboxId, revision } = written
  const fields = fieldsOf(refusal)
  const message = tell({ ...receipt, fields, revision, reversalStatus: 'REQUIRED' })
  await deps.announcer.publish({
    ...{ clientId: work.addressee, replyTo: receipt.replyTo, outboxId, revision },
    ...message,
  })
  await queueReversal(receipt, deps)
  return true
}

function speaksOutside({ claims }: Work<unknown>): boolean {
  return CATALOGUE[claims.kind].asksProvider(claims.request)
}

/** The same decision; where it refuses although this job, in whatever attempt, did something outside, that is to be undone. */
export function owing(decision: Decision, work: Work<unknown>, deps: Deps): Decision {
  const { settled } = decision
  if (!settled || !isRefusal(settled) || !deps.outside || !speaksOutside(work)) return decision
  const refusing: Decision = {
    save: async db => {
      await decision.save(db)
      const owed = await owedOf(db, work.receiptId, deps)
      await intents.owe(db, owed, deps.clock())
      if (owed.length > 0) refusing.reversal = 'REQUIRED'
      return settled
    },
  }
  return refusing
}

/** Intents that had, or may have had, an effect. The others are abandoned: nothing will come of them. */
export async function owedOf(db: Db, receiptId: string, { clock }: Pick<Deps, 'clock'>): Promise<string[]> {
  const owed: string[] = []
  for (const { intentId, provisionId, state, reversal } of await intents.findByReceipt(db, receiptId)) {
    if (reversal !== null || (state !== 'INTENDED' && state !== 'DONE')) continue
    const row = await storedSchemes.find(db, provisionId)
    const isOurs = row?.lastIntent === intentId
    if (state === 'DONE' || (isOurs && row.asked !== null)) owed.push(intentId)
    else {
      await intents.abandon(db, [intentId], clock())
      if (isOurs && row.state === 'PENDING' && !row.background) await schemeTokens.withdraw(db, provisionId, clock())
    }
  }
  return owed
}

async function receiptOf(work: Work<unknown>, refusal: Refusal, deps: Deps): Promise<Receipt> {
  const { claims, client, receiptId, envelopeDigest, attempt, acceptedAt } = work
  const told = (await withoutOwnCard(work, deps)).claims
  return {
    ...{ receiptId, clientId: client.clientId, iss: claims.iss, kind: claims.kind, jti: told.jti },
    requestDigest: deps.ring.requestDigest(requestText(claims.kind, claims.request)),
    ...{ envelopeDigest, replyTo: claims.reply_to ?? null, reference: told.reference ?? null, status: 'FAILED' },
    ...{ code: REASONS[refusal.reason].code, outcome: null, refusal: fieldsOf(refusal), tokenId: null, batchNo: null },
    ...{ chunk: null, counts: null, outcomes: null, failedRecords: 0, revision: 1, reversal: 'REQUIRED' },
    ...{ attempt, acceptedAt, completedAt: deps.clock() },
  }
}
