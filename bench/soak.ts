// `npm run soak`: inspects generated streams of any size, migrates and ingests generated files, each twice, and runs at full
// volume the suites that `npm test` runs with less. Nothing may be lost or doubled, and memory may not grow with the size.
// `--rows 5000000` or `--bytes 2000000000` sets the size, `--engine postgres` selects the other engine, `--parts migrate`
// selects some of inspect, migrate, ingest, console and suites, `--minutes 25` says how long the console is used, `--form CSV` sends
// CSV or nested JSON alone to inspect. The last line is `N passed, N failed`.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { SOAK } from '../test/support/volume.ts'
import { openPlace } from './place.ts'
import { soakConsole } from './soak/console.ts'
import { soakIngest } from './soak/ingest.ts'
import { soakInspect } from './soak/inspect.ts'
import { soakMigrate } from './soak/migrate.ts'
import { type Check, openChecks, type SoakOptions } from './soak/run.ts'

const BYTES_PER_ROW = 60
const root = fileURLToPath(new URL('..', import.meta.url))

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    bytes: { type: 'string' },
    engine: { type: 'string', default: 'redis' },
    form: { type: 'string', multiple: true },
    parts: { type: 'string', default: 'inspect,migrate,ingest,console,suites' },
    minutes: { type: 'string', default: '25' },
  },
})
const rows = values.bytes === undefined ? Number(values.rows) : Math.ceil(Number(values.bytes) / BYTES_PER_ROW)
const engine = values.engine === 'postgres' ? 'postgres' : 'redis'
const parts = values.parts.split(',')
if (!Number.isSafeInteger(rows) || rows < 1) throw new Error('--rows and --bytes take a whole number above 0')

const { check, counts } = openChecks()
if (parts.includes('inspect')) {
  const { bytes = rows * BYTES_PER_ROW, form: forms } = values
  await soakInspect({ bytes: Number(bytes), ...(forms && { forms }), check })
}
const place = await openPlace()
try {
  const options: SoakOptions = { place, engine, rows, check }
  if (parts.includes('migrate')) await soakMigrate(options)
  if (parts.includes('ingest')) await soakIngest(options)
  if (parts.includes('console')) await soakConsole({ ...options, minutes: Number(values.minutes) })
} finally {
  await place.close()
}
if (parts.includes('suites')) soakSuites(check)
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed\n`)
process.exitCode = counts.failed === 0 && counts.passed > 0 ? 0 : 1

function soakSuites(check: Check): void {
  const files = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.ts') && readFileSync(join(root, 'test', file), 'utf8').includes('/volume.ts'))
    // A file that the tests of a folder share stands for all tests beside it.
    .map(file => join('test', file.endsWith('.test.ts') ? file : join(file, '..')))
  const env = { ...process.env, [SOAK]: '1' }
  const { status } = spawnSync(process.execPath, ['test/run.ts', ...files], { cwd: root, env, stdio: 'inherit' })
  check('suites', 'hold at their full volume', status, 0)
}
