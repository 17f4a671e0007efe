import { readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run } from '../../../cli/main.ts'
import { HEADING } from '../../../src/vault/shares/share-text.ts'
import { type Bench, openBench } from '../command-bench.ts'

let bench: Bench
let files: string[]
let kek: string
beforeAll(async () => {
  bench = await openBench()
  kek = join(bench.dataDir, 'kek')
  await bench.cli(['schema', 'upgrade', '--make-kek', kek])
  files = await backUp('shares')
})
afterAll(() => bench.close())

async function backUp(folder: string): Promise<string[]> {
  const words = ['key', 'backup', '--shares', '3', '--of', '5', '--out', join(bench.dataDir, folder), '--json']
  const { status, json } = await bench.cli([...words, '--reason', 'yearly'])
  expect(status).toBe(0)
  return json<{ files: string[] }>().files
}

let made = 0
const freshPath = () => join(bench.dataDir, `restored-${++made}`)
const restore = (shares: readonly string[], words: string[] = [], options: { stdin?: string } = {}) =>
  bench.cli(['key', 'restore', '--out', freshPath(), ...words, ...shares], options)
const audited = (action: string) =>
  bench.rows<{ subject: string; detail: Record<string, unknown> }>(
    `select subject, detail from tokenmill.audit where action = $1 and outcome = 'done'`,
    { values: [action] },
  )
/** A copy of a share with one letter of a line changed. */
async function damage(path: string, line: number): Promise<string> {
  const lines = (await readFile(path, 'utf8')).split('\n')
  const at = lines.findIndex(text => text.startsWith(`${line}:`))
  const text = lines[at] ?? ''
  const copy = `${path}.damaged`
  await writeFile(copy, lines.with(at, `${text.slice(0, 3)}${text[3] === '7' ? '8' : '7'}${text.slice(4)}`).join('\n'))
  return copy
}

describe('key backup', () => {
  it('makes files of mode 0600, an audit row with the reason', async () => {
    expect(files).toHaveLength(5)
    for (const path of files) expect((await stat(path)).mode & 0o777).toBe(0o600)
    const [row] = await audited('kek.backup')
    expect(row?.detail).toMatchObject({ threshold: 3, of: 5, reason: 'yearly' })
    expect(row?.subject).toMatch(/^kek-[0-9a-f]{16}$/)
  })

  it('refuses a threshold that nobody could reach, and makes nothing then', async () => {
    const out = join(bench.dataDir, 'none')
    expect(await bench.cli(['key', 'backup', '--shares', '4', '--of', '3', '--out', out])).toMatchObject({ status: 64 })
    for (const count of ['0', '1', '17'])
      expect((await bench.cli(['key', 'backup', '--shares', count, '--of', '5', '--out', out])).status).toBe(64)
    await expect(readdir(out)).rejects.toThrow('ENOENT')
  })

  it('leaves no file and no row if its files or its row cannot be written', async () => {
    const before = await audited('kek.backup')
    const out = join(bench.dataDir, 'in-the-way')
    await writeFile(out, '')
    const words = ['key', 'backup', '--shares', '2', '--of', '3', '--out']
    expect(await bench.cli([...words, out])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('is no folder'),
    })
    await bench.rows('alter table tokenmill.audit add constraint no_room check (false) not valid')
    expect((await bench.cli([...words, `${out}-not`])).status).toBe(1)
    await bench.rows('alter table tokenmill.audit drop constraint no_room')
    expect(await readdir(`${out}-not`)).toEqual([])
    expect(await audited('kek.backup')).toEqual(before)
  })
})

describe('key restore', () => {
  it('gives the same file from any three shares, records it, and overwrites nothing', async () => {
    const out = join(bench.dataDir, 'again')
    const words = ['key', 'restore', '--out', out, ...files.slice(2)]
    const restored = await bench.cli([...words, '--json'])
    expect(restored).toMatchObject({ status: 0 })
    expect(restored.json()).toMatchObject({ file: out, recorded: true })
    expect(await readFile(out, 'utf8')).toBe(await readFile(kek, 'utf8'))
    expect((await stat(out)).mode & 0o777).toBe(0o600)
    expect((await audited('kek.restore'))[0]?.detail).toMatchObject({ shares: [3, 4, 5] })
    const again = await bench.cli(words)
    expect(again).toMatchObject({ status: 78, stderr: expect.stringContaining('never overwritten') })
    expect(await audited('kek.restore')).toHaveLength(1)
  })

  it('counts the data keys that the key wraps, without destroyed ones', async () => {
    const wraps = async () => (await restore(files.slice(0, 3), ['--json'])).json<{ data_keys: number }>().data_keys
    const before = await wraps()
    await bench.rows(
      `insert into tokenmill.data_key (purpose, version, kek_id, wrapped, state)
select 'seal', 9, kek_id, null, 'DESTROYED' from tokenmill.installation`,
    )
    expect(await wraps()).toBe(before)
    await bench.rows(`delete from tokenmill.data_key where state = 'DESTROYED'`)
  })

  it('brings a host back whose file is lost', async () => {
    await rename(kek, `${kek}.lost`)
    expect((await bench.cli(['key', 'restore', '--out', kek, ...files.slice(0, 3)])).status).toBe(0)
    expect((await bench.cli(['schema', 'upgrade'])).status).toBe(0)
  })

  it('reads shares from standard input, and needs no database offline', async () => {
    const stdin = (await Promise.all(files.slice(1, 4).map(path => readFile(path, 'utf8')))).join('\n')
    expect(await restore([], [], { stdin })).toMatchObject({ status: 0 })
    const rows = await audited('kek.restore')
    const env = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' }
    const words = ['key', 'restore', '--out', freshPath(), '--offline']
    expect(await bench.cli(words, { stdin, env })).toMatchObject({
      status: 0,
      stderr: expect.stringContaining('No audit row'),
    })
    expect(await audited('kek.restore')).toEqual(rows)
    expect((await bench.cli([...words, '--operator', files[0] ?? ''], { stdin })).status).toBe(64)
    expect((await restore([], [], { stdin: 'nothing' })).status).toBe(64)
  })

  it('lets shares be typed at a terminal, shows nothing of them, and asks again for a wrong line', async () => {
    const modes: boolean[] = []
    const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (on: boolean) => modes.push(on) })
    let said = ''
    const screen = new Writable({
      write(chunk, _encoding, done) {
        said += String(chunk)
        done()
      },
    })
    const shares = await Promise.all(files.slice(2).map(path => readFile(path, 'utf8')))
    const lines = shares.flatMap(text => text.match(/^\d: .*$/gm) ?? [])
    stdin.write(`${lines[1]}\r`)
    stdin.write(`${shares[0]?.replaceAll('\n', '\r')}${lines.slice(6).join('\r')}\r`)
    const out = freshPath()
    const words = ['key', 'restore', '--out', out, '--offline']
    expect(await run(words, { env: bench.env, stdin, stdout: screen, stderr: screen })).toBe(0)
    expect(await readFile(out, 'utf8')).toBe(await readFile(kek, 'utf8'))
    expect(said).toContain('Line 1 is wrong; type it again.')
    expect(said).toContain('2 more to type')
    expect(lines.filter(line => said.includes(line.slice(3, 12)))).toEqual([])
    expect(modes).toEqual([true, false])
  })

  it('makes nothing when the typing is broken off', async () => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => undefined })
    const screen = new Writable({ write: (_chunk, _encoding, done) => done() })
    stdin.write('1: 0\r\u0003')
    const words = ['key', 'restore', '--out', freshPath(), '--offline']
    expect(await run(words, { env: bench.env, stdin, stdout: screen, stderr: screen })).toBe(130)
    expect(await readdir(bench.dataDir)).not.toContain(`restored-${made}`)
  })

  it('refuses too few, a share given twice, shares of two sets, and a damaged one by its name', async () => {
    const others = await backUp('others')
    const [one = '', two = '', three = ''] = files
    const refusals: [string[], string][] = [
      [[one, two], '2 of the 3 shares that are needed'],
      [[one, two, two], `${two} and ${two} are the same share`],
      [[one, two, others[2] ?? ''], 'of different sets'],
      [[one, await damage(two, 4), three], `${two}.damaged is damaged in line 4`],
      [[one, two, kek], `${kek} is not a share of a key`],
      [[one, two, join(bench.dataDir, 'absent')], 'does not exist'],
    ]
    for (const [shares, says] of refusals) {
      const { status, stderr, stdout } = await restore(shares)
      expect(stderr).toContain(says)
      expect({ status: status === 0, stdout }).toEqual({ status: false, stdout: '' })
    }
    const names = await readdir(bench.dataDir)
    expect(names).not.toContain(`restored-${made}`)
  })

  it('shows no line of a share, and no key, in anything that it prints or records', async () => {
    const key = (await readFile(kek, 'utf8')).split('\n')[1] ?? ''
    const shares = await Promise.all(files.map(path => readFile(path, 'utf8')))
    const secretsOf = (text: string) => (text.match(/^\d: .*$/gm) ?? []).map(line => line.slice(3, 17))
    const secrets = [key.slice(3, 17), ...shares.flatMap(secretsOf)]
    const said = [
      await restore(files.slice(0, 3), ['--json']),
      await restore(files.slice(0, 2)),
      await restore([await damage(files[0] ?? '', 1), ...files.slice(1, 3)]),
      await restore([], [], { stdin: shares.join('\n').replaceAll(HEADING, `${HEADING}\n# x`) }),
      await bench.cli(['key', 'backup', '--shares', '2', '--of', '2', '--out', join(bench.dataDir, 'two')]),
    ]
    for (const name of await readdir(join(bench.dataDir, 'two')))
      secrets.push(...secretsOf(await readFile(join(bench.dataDir, 'two', name), 'utf8')))
    expect(secrets).toHaveLength(43)
    const rows = JSON.stringify(await bench.rows('select actor, action, subject, detail from tokenmill.audit'))
    const all = [...said.flatMap(({ stdout, stderr }) => [stdout, stderr]), rows].join('\n')
    expect(secrets.filter(secret => all.includes(secret))).toEqual([])
  })
})
