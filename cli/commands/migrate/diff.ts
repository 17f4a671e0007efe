// `tokenmill migrate diff NEW…`: lists what a new file, or the parts of an export, would change, and says what to run next.
import { randomUUID } from 'node:crypto'
import { type DiffSummary, diff } from '../../../producers/diff/diff.ts'
import type { RejectedMax } from '../../../producers/migrate/options.ts'
import { refuseSameContent } from '../../../producers/migrate/parts.ts'
import { shortfallOf } from '../../../producers/rows/only/list.ts'
import { withAccess } from '../../../src/acts/access.ts'
import { lowerPriority } from '../../../src/low-priority.ts'
import { EXIT, Stop } from '../../exit.ts'
import { openCommandStore, openSession, type Session } from '../../open/open.ts'
import { stopper } from '../../process/stopper.ts'
import { actor, facts, print, say, type Terminal } from '../../terminal.ts'
import { type MigrateCommandOptions, openMigration } from '../migrate.ts'

interface DiffCommandOptions extends Omit<MigrateCommandOptions, 'recordKind'> {
  complete?: boolean
  maxRemoved: RejectedMax
}

export async function run(terminal: Terminal, files: readonly string[], options: DiffCommandOptions): Promise<void> {
  const session = openSession(terminal)
  lowerPriority(session.config.lockMs)
  const stop = stopper(session)
  try {
    await refuseSameContent(files)
    const { optionsOf, deps } = await openMigration(session, { ...options, recordKind: 'token-create' }, stop.signal)
    const migrate = files.map(optionsOf)
    const scope = migrate[0]?.scope
    const complete = options.complete
      ? { db: await openCompared(session, scope), removedMax: options.maxRemoved }
      : undefined
    const found = await diff({ migrate, complete }, deps)
    show(terminal, files, options, found)
    conclude(terminal, { files, scope }, found)
    const missing = shortfallOf(found.listing)
    if (missing === undefined) return
    say(terminal, `tokenmill: ${missing}`)
    if (options.allowMissing !== true) process.exitCode = EXIT.incomplete
  } finally {
    stop.leave()
    await session.lifetime.close()
  }
}

/** It reads every owner of the accounts: that leaves a trace. */
async function openCompared(session: Session, scope: string | undefined) {
  const { store } = await openCommandStore(session)
  const access = { actor: actor(), action: 'references.compare', subject: scope ?? '-' }
  return withAccess(store, access, { waits: session.config.auditUrl !== undefined }, async () => store)
}

function show(terminal: Terminal, files: readonly string[], options: DiffCommandOptions, found: DiffSummary): void {
  const { rows, changes, leftOut, removed, stopped, plans, releases, listing, ms } = found
  const value = {
    files,
    rows,
    changes,
    left_out: leftOut,
    removed: removed?.count,
    compared: removed?.stored,
    stopped,
    plans,
    releases,
    listing,
    ms,
  }
  const counts = Object.entries(changes).map(([change, n]) => [change, String(n)])
  const text = facts({
    rows: `${rows} in ${(ms / 1000).toFixed(1)} s`,
    ...Object.fromEntries(counts),
    'changes nothing': stopped ? undefined : String(leftOut),
    removed: removed && `${removed.count} of ${removed.stored} stored`,
    plan: stopped ? undefined : plans.map(({ plan }) => plan).join(', ') || 'nothing to migrate',
    releases: stopped || !removed ? undefined : (releases ?? 'nothing to release'),
  })
  print(terminal, options, value, text)
}

interface Next {
  files: readonly string[]
  scope: string | undefined
}

function conclude(terminal: Terminal, { files, scope }: Next, found: DiffSummary): void {
  const { stopped, removed, plans, releases } = found
  if (stopped === 'interrupted')
    throw new Stop('stopped before the end, and nothing was written; run the same command again', EXIT.failure)
  if (stopped === 'removed' && removed)
    throw new Stop(
      `${removed.count} of ${removed.stored} stored owners are not in ${files.join(', ')}, more than --max-removed allows, and nothing was written: see whether the export is whole and of this account; if it is, run the same command with a higher --max-removed`,
      EXIT.overMax,
    )
  // A plan may tell of nothing but owners who are gone.
  const isMigrated = Object.keys(found.changes).length > 0
  for (const { file, plan } of isMigrated ? plans : [])
    say(terminal, `tokenmill: next: tokenmill migrate ${file} --only ${plan}, with the same options`)
  if (!releases) return
  // These releases may be the same as those of an earlier diff, whose owners have come back since: under the id that follows
  // from the file, the earlier batch would be told once more.
  const batchId = `releases-${randomUUID()}`
  say(
    terminal,
    `tokenmill: then: tokenmill migrate ${releases} --record-kind reference --scope ${scope} --batch-id ${batchId}`,
  )
}
