// `npm run demo`: makes an OpenPGP-encrypted sample export, migrates it on the embedded engine in a data directory of
// its own, and shows what came of it. Every run begins afresh.
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { makePgpKeyPair } from '../producers/migrate/openpgp.ts'
import { SPECIES, writeSample } from '../producers/migrate/sample.ts'
import { endingOf } from '../src/cli/exit.ts'
import { migrateFile, report } from '../src/cli/migrate.ts'
import { openSession } from '../src/cli/open.ts'
import { processTerminal, say } from '../src/cli/terminal.ts'
import { discard } from '../src/embedded/server.ts'

const ROWS = 10_000
const ROWS_SHOWN = 6

const dataDir = resolve('.tokenmill-demo')
const env = {
  ...process.env,
  TOKENMILL_DATA_DIR: dataDir,
  DATABASE_URL: '',
  REDIS_URL: '',
  TOKENMILL_KEK_FILE: '',
  TOKENMILL_METRICS_PORT: '0',
}
const terminal = { ...processTerminal(), env }

async function demo(): Promise<void> {
  discard(dataDir)
  await rm(dataDir, { recursive: true, force: true })
  await mkdir(dataDir, { recursive: true, mode: 0o711 })
  const file = join(dataDir, 'cards.csv.pgp')
  const key = join(dataDir, 'export-key.asc')
  const pair = await makePgpKeyPair('tokenmill demo')
  await writeFile(key, pair.privateKey, { mode: 0o600 })
  const sample = await writeSample(file, { rows: ROWS, seed: 1, now: Date.now(), encryptTo: pair.publicKey })
  const bad = SPECIES.filter(species => species !== 'good').map(species => `${sample[species]} ${species}`)
  say(terminal, `A sample export of ${ROWS} test cards, OpenPGP-encrypted: ${relative('.', file)}`)
  say(terminal, `Of them on purpose: ${bad.join(', ')}.`)
  say(terminal, 'Starting the embedded PostgreSQL and the workers ...')
  const session = openSession(terminal)
  try {
    const options = {
      decryptKey: key,
      onConflict: 'update',
      onExpired: 'import',
      chunk: 500,
      inFlight: 16,
      recordKind: 'token-create',
    } as const
    const summary = await migrateFile(session, file, options, new AbortController().signal)
    report(session, summary, {})
    const lines = (await readFile(summary.results, 'utf8')).split('\n')
    terminal.stdout.write(`\nThe first rows of the results:\n${lines.slice(0, ROWS_SHOWN + 1).join('\n')}\n\n`)
    terminal.stdout.write(`results   ${relative('.', summary.results)}\nmanifest  ${relative('.', summary.manifest)}\n`)
    terminal.stdout.write(
      `verify    npx tokenmill manifest verify ${relative('.', summary.manifest)} --client ${relative('.', join(dataDir, 'dev-client.json'))}\n`,
    )
  } finally {
    await session.lifetime.close()
  }
}

demo().then(
  () => process.exit(0),
  error => {
    const { line, status } = endingOf(error)
    if (line) say(terminal, `tokenmill: ${line}`)
    process.exit(status || 1)
  },
)
