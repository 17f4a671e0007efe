// The nightly sweep: one job for every token whose date has passed, page by page. The next page is sent when the one
// before is answered, so that a million tokens wait in the store and not on the queue. Workers suspend the tokens.
import { setTimeout as pause } from 'node:timers/promises'
import { assert, isRefusal } from '../../src/errors.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { CORE_KINDS } from '../../src/job/core-kinds.ts'
import { receiptId } from '../../src/job/envelope/ids.ts'
import { rolesOf } from '../../src/job/envelope/roles.ts'
import { describeError } from '../../src/logger.ts'
import type { QueuedJob } from '../../src/queue/engine.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import * as runs from '../../src/store/report/schedule-runs.ts'
import * as expiry from '../../src/store/token/token-expiry.ts'
import { formatReuseToken } from '../../src/token/token.ts'
import type { SendingDeps } from './own-jobs.ts'
import { noteEnd } from './run-notes.ts'

const POLL_MS = 100
const RESEND_MS = 60_000
/** How long the run belongs to this process after each renewal. */
const LEASE_MS = 60_000

export interface ExpirySweeper {
  /** Starts a claimed run. If another run is in progress here, does nothing: the run is claimed again later. */
  start(run: runs.Run): void
  /** Takes a result, whose job may belong to this sweep. */
  onResult(result: Result): void
  close(): Promise<void>
}

export function openExpirySweeper(deps: SendingDeps): ExpirySweeper {
  const { store, queues, log, clock } = deps
  const stop = new AbortController()
  /** Receipt → token, for the current page. */
  const pending = new Map<string, expiry.ExpiredToken>()
  let failed = 0
  let running: Promise<void> | undefined

  async function sweep(run: runs.Run): Promise<void> {
    let after: expiry.Place | undefined
    let tokens = 0
    failed = 0
    for (;;) {
      const page = await expiry.findExpired(store, run.businessDate, after, deps.settings.sweepPage)
      after = page.last
      if (after === undefined) break
      tokens += page.tokens.length
      await workPage(run, page.tokens)
      if (stop.signal.aborted) return
    }
    // The next night's sweep finds the failed tokens again.
    const ended = await (failed === 0 ? runs.finishSweep(store, run, tokens) : runs.fail(store, run, 'tokens_failed'))
    if (ended) noteEnd(ended, deps)
    if (tokens > 0) log.info({ date: run.businessDate, tokens, failed }, 'tokens whose date has passed were swept')
  }

  async function workPage(run: runs.Run, page: readonly expiry.ExpiredToken[]): Promise<void> {
    pending.clear()
    for (const token of page) pending.set(receiptId(deps.signingKey.clientId, jtiOf(run, token)), token)
    let sentAt = 0
    while (pending.size > 0 && !stop.signal.aborted) {
      if (clock() - sentAt >= RESEND_MS) {
        await runs.markQueued(store, run, clock() + 2 * LEASE_MS)
        if (sentAt > 0) await forgetAnswered()
        await queues.addBulk('token-lifecycle', await jobsOf(run, [...pending.values()], deps))
        sentAt = clock()
      }
      await pause(POLL_MS, undefined, { signal: stop.signal }).catch(() => {})
      // Another scheduler may have taken the results; the store shows both schedulers that a token isn't due any more.
      const still = await expiry.stillExpired(
        store,
        run.businessDate,
        [...pending.values()].map(({ tokenId }) => tokenId),
      )
      for (const [receipt, { tokenId }] of pending) if (!still.has(tokenId)) pending.delete(receipt)
    }
  }

  async function forgetAnswered(): Promise<void> {
    for (const receipt of [...pending.keys()]) if (await receipts.find(store, receipt)) pending.delete(receipt)
  }

  return {
    start(run) {
      running ??= sweep(run)
        .catch(error => log.warn({ error: describeError(error) }, 'a sweep of expired tokens broke off; it will go on'))
        .finally(() => {
          running = undefined
        })
    },
    onResult({ receipt_id: receipt, status, code }) {
      // A token that was deleted in the meantime needs no suspension.
      if (pending.delete(receipt) && status === 'FAILED' && code !== 404) failed += 1
    },
    async close() {
      stop.abort()
      await running
    },
  }
}

const jtiOf = ({ businessDate }: runs.Run, { tokenId }: expiry.ExpiredToken) => `exp-${businessDate}-${tokenId}`

/**
 * The jobs belong to the system client `scheduler`, because the expiry date of a token applies whichever client made
 * the token.
 */
async function jobsOf(
  run: runs.Run,
  tokens: readonly expiry.ExpiredToken[],
  { jobs, userId }: SendingDeps,
): Promise<QueuedJob[]> {
  return Promise.all(
    tokens.map(async token => {
      const request = { id: formatReuseToken(token.tokenId), action: 'EXPIRE' }
      const caller = {
        userId,
        entityId: token.entityId,
        roles: rolesOf(CORE_KINDS['token-lifecycle'], request),
      }
      const job = await jobs.sign(caller, { kind: 'token-lifecycle', request }, jtiOf(run, token))
      assert(!isRefusal(job), 'an envelope of ours has its form')
      return job
    }),
  )
}
