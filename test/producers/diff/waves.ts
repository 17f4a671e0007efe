// Runs migrations and diffs of small files in the test's process, and reads what the vault holds afterwards.
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { makeScope } from '../../../cli/open/make-scope.ts'
import { type DiffSummary, diff } from '../../../producers/diff/diff.ts'
import type { FileRunDeps } from '../../../producers/file-run.ts'
import type { MigrateOptions, RejectedMax } from '../../../producers/migrate/options.ts'
import { migrate, type Summary } from '../../../producers/migrate/run.ts'
import { readOnly } from '../../../producers/rows/only/read.ts'
import { Secret } from '../../../src/secret.ts'
import { pagesOf } from '../../../src/store/reference/reference-views.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import { isSameCard } from '../../../src/token/token.ts'
import { ENTITY, type Installation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { silent } from '../bundle.ts'
import { profile } from '../rows/profile/profiled.ts'

export const SHOP = profile({
  where: [{ field: 'kind', is: ['card'] }],
  on_file: {
    provider: 'shop',
    provider_account: { from: 'account' },
    customer_id: '{customer}',
    card_id: '{id}',
    network_transaction_ids: { from: 'nti' },
  },
})
const HEADER = 'id,account,customer,kind,number,month,year,name,nti'

/** A row of the file; `card`: which test number. */
export interface ShopRow {
  id?: string
  account?: string
  customer?: string
  kind?: string
  card: number | string
  year?: number
  nti?: string
}

export function lineOf({
  id = '',
  account = 'eu',
  customer = '',
  kind = 'card',
  card,
  year = 2031,
  nti = '',
}: ShopRow) {
  const number = typeof card === 'number' ? testPan(card) : card
  return [id, account, customer, kind, number, 12, year, 'ANNA MEYER', nti].join(',')
}

export interface Waves {
  /** A new file of these rows. */
  put(rows: readonly (ShopRow | string)[]): Promise<string>
  migrate(file: string, options?: Partial<MigrateOptions>): Promise<Summary>
  diff(
    files: string | readonly string[],
    options?: Partial<MigrateOptions>,
    removedMax?: RejectedMax | 'partial',
  ): Promise<DiffSummary>
  /** Migrates the plans and the releases of a diff; `file`: to which the one plan is applied. */
  apply(file: string, found: DiffSummary, options?: Partial<MigrateOptions>): Promise<void>
  /** The token of each test card below `cards`, and the card of each owner, without ids of tokens. */
  state(scope: string, cards: number): Promise<Record<string, unknown>>
  newScope(): Promise<string>
}

/** `stop`: when aborted, no more chunks are sent. */
export async function openWaves(
  installation: Installation,
  stop: AbortSignal = new AbortController().signal,
): Promise<Waves> {
  const { credentials, queues, vault } = installation
  const stream = new Writable({ write: (_, __, done) => done() }) as unknown as NodeJS.WriteStream
  const deps: FileRunDeps = { queues, credentials, clock: Date.now, log: silent, stream, stop }
  let files = 0
  const folder = await mkdtemp(join(installation.dataDir, 'waves-'))
  const optionsOf = (file: string, more: Partial<MigrateOptions>): MigrateOptions => ({
    file,
    profile: SHOP,
    scope: installation.scope,
    ignoreUnknown: false,
    echo: [],
    dryRun: false,
    again: false,
    onConflict: 'update',
    onExpired: 'import',
    chunk: 3,
    inFlight: 1,
    recordKind: 'token-create',
    ...more,
  })
  const run = (file: string, more: Partial<MigrateOptions>) => migrate(optionsOf(file, more), deps)
  return {
    async put(rows) {
      files += 1
      const file = join(folder, `${files}.csv`)
      await writeFile(file, [HEADER, ...rows.map(row => (typeof row === 'string' ? row : lineOf(row))), ''].join('\n'))
      return file
    },
    migrate: (file, options = {}) => run(file, options),
    diff: (files, options = {}, removedMax = { share: 1 }) =>
      diff(
        {
          migrate: (typeof files === 'string' ? [files] : files).map(file => optionsOf(file, options)),
          complete: removedMax === 'partial' ? undefined : { db: vault.store, removedMax },
        },
        deps,
      ),
    async apply(given, { plans, releases }, options = {}) {
      for (const { file: own, plan } of plans) {
        const file = plans.length === 1 ? given : own
        if (!(await isOnlyRemoved(plan)))
          await run(file, {
            ...options,
            only: await readOnly(plan),
            results: `${file}.applied.csv`,
            manifest: `${file}.applied.json`,
          })
      }
      if (releases)
        await run(releases, {
          profile: undefined,
          recordKind: 'reference',
          scope: options.scope ?? installation.scope,
        })
    },
    async state(scope, cards) {
      const pans = Array.from({ length: cards }, (_, index) => new Secret(testPan(index)))
      const prints = pans.map(pan => vault.ring.fingerprints(pan, scope).known)
      const rows = await tokens.findByCards(vault.store, prints.flat())
      const cardOf = new Map(rows.map(row => [row.tokenId, prints.findIndex(known => isSameCard(row.cards, known))]))
      const state: Record<string, unknown> = {}
      for (const { tokenId, expiryYear, status } of rows)
        state[`card ${cardOf.get(tokenId)}`] = `${expiryYear} ${status}`
      for await (const page of pagesOf(vault.store, { tokenScope: scope }))
        for (const { providerAccount, customerId, cardId, token, onFile } of page)
          state[`${providerAccount}/${customerId}/${cardId}`] = { card: cardOf.get(token.tokenId), ...onFile }
      return state
    },
    newScope: async () => (await makeScope(vault, { ...SCOPE, entityId: ENTITY })).tokenScope,
  }
}

const SCOPE = { par: true, networkTokens: false, requestor: 'MERCHANT', binDigits: 8 } as const

async function isOnlyRemoved(plan: string): Promise<boolean> {
  const lines = (await readFile(plan, 'utf8')).trimEnd().split('\n')
  return lines.every(line => line.includes('"change":"removed"'))
}
