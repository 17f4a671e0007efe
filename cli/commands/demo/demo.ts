// `tokenmill demo`: makes an OpenPGP-encrypted sample export in the columns of a provider, migrates it on the embedded
// engine in a separate data directory, and shows the results, a card of two customers, reports, and a token over HTTP.
// Every run begins afresh.
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { SAMPLE_ROWS, writeSample } from '../../../bin/sample/cards.ts'
import { makePgpKeyPair } from '../../../producers/rows/openpgp/decrypt.ts'
import { BUILT_IN } from '../../../producers/rows/profile/built-in.ts'
import { discard } from '../../../src/embedded/server.ts'
import { openSession } from '../../open/open.ts'
import { openProducer } from '../../process/producer.ts'
import { print, say, type Terminal } from '../../terminal.ts'
import { migrateFile, report } from '../migrate.ts'
import { readOverHttp } from './over-http.ts'
import { reportBatch, reportNight } from './reports.ts'

const ROWS = 10_000
const ROWS_SHOWN = 6
const ACCOUNT = 'acct_demo'

/**
 * Stripe documents `card.transaction_ids` only as the state of the ids. The sample has the ids there, so the profile is
 * changed to say so.
 */
const STRIPE = BUILT_IN['stripe-csv']
const PROFILE = {
  ...STRIPE,
  name: 'stripe-with-network-ids',
  on_file: { ...STRIPE.on_file, network_transaction_ids: { from: 'card.transaction_ids' } },
}

/** The settings of the demo, whatever the person's own say. */
const settingsOf = (dataDir: string) => ({
  TOKENMILL_DATA_DIR: dataDir,
  DATABASE_URL: '',
  REDIS_URL: '',
  TOKENMILL_KEK: '',
  TOKENMILL_KEK_FILE: '',
  TOKENMILL_METRICS_PORT: '0',
})

/** Runs the demo to its end. `script`: the command's script, from which the gateway is forked. */
export async function demo(ownTerminal: Terminal, script: string): Promise<void> {
  const dataDir = resolve('.tokenmill-demo')
  const terminal = { ...ownTerminal, env: { ...ownTerminal.env, ...settingsOf(dataDir) } }
  const show = (...lines: string[]) => print(terminal, {}, undefined, lines)
  discard(dataDir)
  await rm(dataDir, { recursive: true, force: true })
  await mkdir(dataDir, { recursive: true, mode: 0o711 })
  const file = join(dataDir, 'cards.csv.pgp')
  const key = join(dataDir, 'export-key.asc')
  const pair = await makePgpKeyPair('tokenmill demo')
  await writeFile(key, pair.privateKey, { mode: 0o600 })
  const profile = join(dataDir, 'stripe.json')
  await writeFile(profile, `${JSON.stringify(PROFILE, null, 2)}\n`)
  const kind = { rows: ROWS, seed: 1, now: Date.now(), isStripe: true }
  const sample = await writeSample(file, { ...kind, encryptTo: pair.publicKey })
  const bad = SAMPLE_ROWS.filter(species => species !== 'good').map(species => `${sample[species]} ${species}`)
  say(
    terminal,
    `A sample export of ${ROWS} test cards in the columns of Stripe, OpenPGP-encrypted: ${relative('.', file)}`,
  )
  say(terminal, `Of them on purpose: ${bad.join(', ')}.`)
  say(
    terminal,
    `Its profile is stripe-csv, and says where the network transaction ids stand: ${relative('.', profile)}`,
  )
  say(terminal, 'Starting the embedded PostgreSQL and the workers ...')
  const session = openSession(terminal)
  try {
    const options = {
      decryptKey: key,
      from: profile,
      providerAccount: ACCOUNT,
      onConflict: 'update',
      onExpired: 'import',
      chunk: 500,
      inFlight: 16,
      recordKind: 'token-create',
    } as const
    const summary = await migrateFile(session, file, options, new AbortController().signal)
    report(session, summary, {})
    const lines = (await readFile(summary.results, 'utf8')).split('\n')
    show('', 'The first rows of the results:', ...lines.slice(0, ROWS_SHOWN + 1), '')
    const shared = sharedCard(lines)
    if (shared) show('Two customers have one card, so they share its token:', ...shared, '')
    show(`results   ${relative('.', summary.results)}`)
    show(`manifest  ${relative('.', summary.manifest)}`)
    show(
      `verify    npx tokenmill manifest verify ${relative('.', summary.manifest)} --client ${relative('.', join(dataDir, 'dev-client.json'))}`,
    )
    const producing = await openProducer(session, undefined, [])
    show(`report    ${relative('.', await reportBatch(session, producing, summary.batchId))}`)
    say(terminal, 'A day of sample transactions, and the nightly report of it ...')
    show(`nightly   ${relative('.', await reportNight(session, producing))}`)
    const { line, answer } = await readOverHttp(session, script, summary.results)
    show('', 'One of the tokens, over HTTP:', `$ ${line}`, ...answer.split('\n'), '')
    say(terminal, 'To go on with these tokens: TOKENMILL_DATA_DIR=.tokenmill-demo npx tokenmill start')
  } finally {
    await session.lifetime.close()
  }
}

/** Two rows of results with one token. */
function sharedCard(lines: readonly string[]): [string, string] | undefined {
  const byToken = new Map<string, string>()
  for (const line of lines) {
    const [token] = /\bt[0-9A-Z]{26}\b/.exec(line) ?? []
    const first = token && byToken.get(token)
    if (first) return [first, line]
    if (token) byToken.set(token, line)
  }
  return undefined
}
