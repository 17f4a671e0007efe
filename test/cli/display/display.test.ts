// `tokenmill display`: a link is printed once, displays are listed and revoked, and each act is in the audit.
import { hash } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Bench, openBench } from '../command-bench.ts'

const ENTITY = '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'

describe('tokenmill display', () => {
  let bench: Bench
  beforeAll(async () => {
    bench = await openBench()
    await bench.cli(['schema', 'upgrade', '--make-kek', join(bench.dataDir, 'kek')])
  }, 60_000)
  afterAll(() => bench?.close())

  it('add prints the link once, and keeps a hash of its value alone', async () => {
    const env = { TOKENMILL_CONSOLE_ORIGIN: 'https://console.example.com' }
    const said = await bench.cli(['display', 'add', 'room 2', '--reason', 'the wall'], { env })
    expect(said.status, said.stderr).toBe(0)
    const [, value = ''] = /^https:\/\/console\.example\.com\/display\/open#([\w-]{43})\n$/.exec(said.stdout) ?? []
    const [row] = await bench.rows<{ days: number; text: string; made_by: string }>(
      `select extract(day from expires_at - created_at)::integer as days, d::text as text, made_by from tokenmill.display as d
where link_hash = $1`,
      { values: [hash('sha256', value, 'buffer')] },
    )
    expect(row).toMatchObject({ days: 400, made_by: expect.stringMatching(/^machine:/) })
    const [audit] = await bench.rows<{ subject: string; text: string; reason: string }>(
      `select subject, t::text as text, detail->>'reason' as reason from tokenmill.audit as t where action = 'display.add'`,
    )
    expect(audit).toMatchObject({ subject: 'room 2', reason: 'the wall' })
    for (const kept of [row?.text, audit?.text]) expect(kept).not.toContain(value)
  })

  it('add refuses a name that is there, one with a card number, and a wrong origin', async () => {
    const add = (name: string, env = {}) => bench.cli(['display', 'add', name], { env })
    expect((await add('room 2')).status).toBe(1)
    expect((await add('4111 1111 1111 1111')).status).toBe(64)
    expect((await add('room 3', { TOKENMILL_CONSOLE_ORIGIN: 'http://console.example.com' })).status).toBe(78)
  })

  it('list tells which are live, and revoke ends one by its name, once', async () => {
    const added = await bench.cli(['display', 'add', 'room 4', '--entity', ENTITY, '--json'])
    expect(added.json()).toMatchObject({ name: 'room 4', entities: [ENTITY] })
    expect((await bench.cli(['display', 'revoke', 'room 4', '--json'])).json()).toEqual({
      display_id: added.json()['display_id'],
      revoked: true,
    })
    const listed = await bench.cli(['display', 'list', '--json'])
    expect(listed.json()).toMatchObject([
      { name: 'room 2', state: 'live', entities: null },
      { name: 'room 4', state: 'revoked', entities: [ENTITY] },
    ])
    expect(listed.stdout).not.toContain('open#')
    expect((await bench.cli(['display', 'revoke', 'room 4'])).status).toBe(1)
    expect((await bench.cli(['display', 'revoke', String(added.json()['display_id'])])).status).toBe(1)
    const rows = await bench.rows<{ outcome: string }>(
      `select outcome from tokenmill.audit where action = 'display.revoke' order by audit_id`,
    )
    expect(rows.map(({ outcome }) => outcome)).toEqual(['done', 'refused'])
  })
})
