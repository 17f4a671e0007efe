import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { storedLives } from '../../cli/open/known-lives.ts'
import { openLog } from '../../src/log.ts'
import { CARDS, scriptOf } from '../../src/simulate/three-ds/cards.ts'
import * as installation from '../../src/store/installation.ts'
import { openStore } from '../../src/store/pool.ts'
import { panFault } from '../../src/token/pan.ts'
import { fileKeyProvider } from '../../src/vault/kek/file.ts'
import { keksOf } from '../../src/vault/kek/provider.ts'
import { startCommand } from '../support/process.ts'
import { ENTITY } from '../three-ds/samples.ts'
import { writeLives } from '../vault/write-lives.ts'
import { type Bench, openBench } from './command-bench.ts'

const TERMS = [
  ...['--entity', ENTITY, '--directory-server', 'http://127.0.0.1:8391/ds', '--acquirer-bin', '400000'],
  ...['--acquirer-merchant-id', 'm-1', '--mcc', '5999', '--country', 'gb'],
  ...['--requestor-url', 'https://shop.example', '--notification-url', 'https://shop.example/return'],
]

describe('threeds-contract', () => {
  let bench: Bench
  beforeAll(async () => {
    bench = await openBench()
    await bench.cli(['schema', 'upgrade', '--make-kek', join(bench.dataDir, 'kek')])
  })
  afterAll(() => bench?.close())

  const add = (name: string, ...more: string[]) => bench.cli(['threeds-contract', 'add', name, ...TERMS, ...more])

  it.each([
    ['--mcc', '59'],
    ['--country', 'XX'],
    ['--directory-server', 'ftp://x'],
    ['--directory-server', 'https://user:word@x'],
    ['--acquirer-bin', '123456789012'],
    ['--notification-url', `https://shop.example/${'x'.repeat(256)}`],
    ['--merchant-name', 'x'.repeat(41)],
  ])('refuses %s %s, names it and makes nothing', async (option, value) => {
    const { status, stderr } = await add('shop', option, value)
    expect({ status, stderr }).toMatchObject({ status: 64, stderr: expect.stringContaining(option) })
    expect(await bench.rows('select 1 from tokenmill.threeds_contract')).toEqual([])
  })

  it('is made, printed without its key, listed and audited, and its name stands once', async () => {
    const made = await add('shop', '--json')
    expect(made.status).toBe(0)
    const { threeds_contract_id: id, ...shown } = made.json<Record<string, string>>()
    expect(shown).toMatchObject({ name: 'shop', entity_id: ENTITY, country: 'GB', issuer: id, org_unit_id: ENTITY })
    expect(made.stdout).not.toContain('key')
    expect(await add('shop')).toMatchObject({ status: 1, stderr: expect.stringContaining('already') })
    const listed = (await bench.cli(['threeds-contract', 'list', '--json'])).json<unknown[]>()
    expect(listed).toMatchObject([{ threeds_contract_id: id }])
    expect(await bench.rows(`select subject from tokenmill.audit where action = 'threeds-contract.add'`)).toEqual([
      { subject: id },
    ])
  })

  it('takes a key that was made elsewhere, and repeats none that is too short', async () => {
    const file = join(bench.dataDir, 'jwt-key')
    await writeFile(file, 'c2hvcnQta2V5')
    const short = await add('other', '--jwt-key', file)
    expect(short).toMatchObject({ status: 64, stderr: expect.stringContaining('fewer than 32 bytes') })
    expect(short.stderr).not.toContain('c2hvcnQ')
    await writeFile(file, `${Buffer.alloc(32, 5).toString('hex')}\n`)
    expect((await add('other', '--jwt-key', file)).status).toBe(0)
  })

  it('gets another key, by an operator’s word, and the former one is ended', async () => {
    const { threeds_contract_id: id = '' } = (await add('turning', '--json')).json<Record<string, string>>()
    const key = (...words: string[]) => bench.cli(['threeds-contract', 'key', ...words, '--reason', 'yearly'])
    const file = join(bench.dataDir, 'next-key')
    const text = Buffer.alloc(32, 7).toString('base64')
    await writeFile(file, `${text}\n`)
    expect((await key('rotate', id, '--hours', '1')).status).toBe(64)
    const rotated = await key('rotate', id, '--hours', '2', '--jwt-key', file, '--json')
    expect(rotated.status).toBe(0)
    const { former_key_until: until = '' } = rotated.json<Record<string, string>>()
    expect(Math.abs(Date.parse(until) - Date.now() - 2 * 3_600_000)).toBeLessThan(60_000)
    expect(`${rotated.stdout}${rotated.stderr}`).not.toContain(text.slice(0, 8))
    const listed = (await bench.cli(['threeds-contract', 'list', '--json'])).json<Record<string, string>[]>()
    expect(listed.find(one => one['threeds_contract_id'] === id)).toMatchObject({ former_key_until: until })
    expect(await key('rotate', id)).toMatchObject({ status: 1, stderr: expect.stringContaining('key revoke') })
    expect(await key('revoke', id)).toMatchObject({ status: 0, stdout: expect.stringContaining('has ended') })
    expect(await key('revoke', id)).toMatchObject({ status: 1, stderr: expect.stringContaining('--at-once') })
    expect((await key('rotate', id, '--at-once', '--json')).json()).toMatchObject({ former_key_until: '-' })
    const audited = await bench.rows<{ action: string; outcome: string }>(
      'select action, outcome from tokenmill.audit where subject = $1 order by at, action',
      { values: [id] },
    )
    expect(audited.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
      'threeds-contract.add done',
      'threeds-contract.key-rotate done',
      'threeds-contract.key-rotate refused',
      'threeds-contract.key-revoke done',
      'threeds-contract.key-revoke refused',
      'threeds-contract.key-rotate done',
    ])
  })

  it('of an installation whose release had no such data key finds the one that the upgrade makes', async () => {
    await bench.rows(`delete from tokenmill.threeds_contract`)
    await bench.rows(`delete from tokenmill.data_key where purpose = 'three-ds'`)
    await bench.rows(`delete from tokenmill.audit where action = 'data-key.add' and subject = 'three-ds'`)
    expect((await add('late')).status).not.toBe(0)
    // Whoever removes the row alone doesn't get another key in its place.
    const refused = await bench.cli(['schema', 'upgrade'])
    expect(refused).toMatchObject({ status: 78, stderr: expect.stringContaining('has lost its data key of three-ds') })
    await forgetPurpose('three-ds')
    expect((await bench.cli(['schema', 'upgrade'])).status).toBe(0)
    expect((await add('late')).status).toBe(0)
  })

  /** Writes the lives of the keys without this purpose, as they are before the release that adds it. */
  async function forgetPurpose(purpose: string): Promise<void> {
    const store = openStore(bench.url, { log: openLog('silent'), connectionsMax: 1 })
    try {
      const keks = keksOf(await fileKeyProvider(join(bench.dataDir, 'kek')))
      const { installationId } = await installation.get(store)
      const keeper = { store, keks, installationId, lives: storedLives({ store, keks, installationId }) }
      await writeLives(keeper, ({ epoch, keys, phase }) => ({
        epoch: epoch + 1,
        keys: keys.filter(key => key.purpose !== purpose),
        phase,
      }))
    } finally {
      await store.close()
    }
  }
})

describe('simulate three-ds', () => {
  it('says where it is and what to set, answers there, and ends at a signal', async () => {
    const child = startCommand(['simulate', 'three-ds', '--port', '0', '--json'])
    const [, url = ''] = await child.line(/"directory_server": "([^"]+)"/)
    const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
    expect(await answer.json()).toMatchObject({ messageType: 'Erro', errorCode: '101' })
    expect(child.stdout()).toContain(`"TOKENMILL_PRIVATE_HOSTS": "${new URL(url).host}"`)
    child.signal('SIGTERM')
    expect(await child.exit).toMatchObject({ code: 0 })
  })

  it('knows only cards that are card numbers', () => {
    for (const pan of CARDS.keys()) expect(panFault(pan), pan).toBeUndefined()
    expect(scriptOf('4111111111111111', 'Ada Tester')).toEqual({ kind: 'answer', status: 'Y' })
  })
})
