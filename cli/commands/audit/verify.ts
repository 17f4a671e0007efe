// `tokenmill audit verify`: checks the audit's chain in the store, compares it with the segments, and names each row that
// was changed, removed, added or swapped. Exit status 0 if nothing was found, else 1. The verdict is written into the audit, if the
// user may do that: so the console can say when somebody verified last. Nobody has to believe it.
import type { Finding } from '../../../src/audit/finding.ts'
import { verifyAudit } from '../../../src/audit/verify.ts'
import { systemClock } from '../../../src/clock.ts'
import * as auditSearch from '../../../src/store/access/audit-search.ts'
import * as audits from '../../../src/store/access/audits.ts'
import type * as signingKeys from '../../../src/store/access/signing-keys.ts'
import type { Db } from '../../../src/store/pool.ts'
import { importPublicJwk } from '../../../src/vault/client-key.ts'
import type { LiveRing } from '../../../src/vault/ring/key-ring.ts'
import type { JsonOption } from '../../command.ts'
import { endingOf } from '../../ending.ts'
import { Stop } from '../../exit.ts'
import { findAuditPlace } from '../../open/audit-place.ts'
import { findOwnKeys } from '../../open/installation-key.ts'
import { openVault, withSession } from '../../open/open.ts'
import { actor, print, say, type Terminal } from '../../terminal.ts'

interface VerifyOptions extends JsonOption {
  segments?: string
}

/** A row without a number is late after this time; a worker numbers rows about once a second. */
const LATE_MS = 60_000
const SHOWN_MAX = 1_000

export function run(terminal: Terminal, options: VerifyOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store, ring, database } = await openVault(session)
    const { segments: url = session.config.auditUrl } = options
    const place = await findAuditPlace(session, url)
    const isComplete = url !== undefined || database.embedded
    const verified = await verifyAudit(store, {
      ring,
      place,
      keys: await keysOf(store, ring),
      isComplete,
      now: systemClock(),
    })
    const { findings, rows, to, segments, rowsOutside } = verified
    const late = await auditSearch.countUnnumbered(store, LATE_MS)
    const counts = { rows, segments, rows_outside: rowsOutside, rows_without_number: late }
    print(terminal, options, { sound: findings.length === 0, ...counts, findings }, textOf(findings, counts))
    if (!isComplete)
      say(terminal, 'AUDIT_URL is not set here, so segments may be elsewhere: name their place by --segments.')
    if (late > 0) say(terminal, `${late} rows have had no number for over a minute: is a worker running?`)
    const said = { ...counts, to, findings: findings.length, place: place.name, is_complete: isComplete }
    await record(terminal, store, said)
    if (findings.length > 0)
      throw new Stop(`the audit is not sound: ${findings.length} ${findings.length === 1 ? 'finding' : 'findings'}`)
  })
}

/** A verification isn't worth less because its user may not write. */
async function record(terminal: Terminal, db: Db, said: Record<string, unknown> & { findings: number }): Promise<void> {
  const outcome = said.findings === 0 ? 'done' : 'failed'
  const audit = { actor: actor(), action: 'audit.verify', subject: 'audit', detail: said, outcome } as const
  await audits.insert(db, audit).catch(error => {
    say(terminal, `The verdict was not written into the audit: ${whyNotWritten(error)}.`)
  })
}

/** SQLSTATEs: the user may only read, or the server. */
const READ_ONLY: Record<string, string> = {
  '42501': 'this user may not write there',
  '25006': 'this database is read-only',
}

function whyNotWritten(error: unknown): string {
  const { code } = error as { code?: unknown }
  return READ_ONLY[String(code)] ?? endingOf(error).line ?? 'unexpected error'
}

function textOf(
  findings: readonly Finding[],
  counts: { rows: number; segments: number; rows_outside: number },
): string | string[] {
  if (findings.length === 0)
    return `The audit is sound: ${counts.rows} rows, compared with ${counts.segments} segments up to row ${counts.rows_outside}.`
  const shown = findings.slice(0, SHOWN_MAX).map(({ says }) => says)
  return [...shown, ...(findings.length > SHOWN_MAX ? [`and ${findings.length - SHOWN_MAX} more (--json)`] : [])]
}

/** A key that the owner of the database has added or changed is left out: what it signed is then a finding. */
async function keysOf(db: Db, ring: LiveRing) {
  const keys = await findOwnKeys(db, ring)
  return new Map(keys.flatMap(({ kid, alg, publicJwk }) => readable(kid, alg, publicJwk)))
}

function readable(kid: string, alg: signingKeys.PublicSigningKey['alg'], jwk: Record<string, unknown>) {
  try {
    return [[kid, { alg, publicKey: importPublicJwk(jwk).key }] as const]
  } catch {
    return []
  }
}
