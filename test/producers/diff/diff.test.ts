// What a diff lists, when it stops, and which files it leaves: with a real vault and small files.
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runCommand } from '../../support/command.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { lineOf, openWaves, SHOP, type ShopRow, type Waves } from './waves.ts'

describeStore('migrate diff', engine => {
  let installation: Installation
  let waves: Waves
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['bulk'] })
    waves = await openWaves(installation)
  })
  afterAll(() => installation?.close())

  const ndjson = async (path: string | undefined) =>
    (await readFile(path ?? '', 'utf8'))
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line) as unknown)
  const of = (n: number, more: Partial<ShopRow> = {}): ShopRow => ({ id: `k${n}`, customer: `c${n}`, card: n, ...more })
  /** Makes a scope and migrates these rows into it. */
  const holding = async (rows: readonly ShopRow[]) => {
    const scope = await waves.newScope()
    await waves.migrate(await waves.put(rows), { scope })
    return scope
  }

  it('lists what is added, changed, moved and removed, and leaves out what changes nothing', async () => {
    const scope = await holding([of(1), of(2), of(3), of(4)])
    const file = await waves.put([
      of(1),
      of(2, { year: 2035 }),
      of(3, { card: 9 }),
      of(5, { nti: 'n' }),
      of(6, { card: '1' }),
    ])
    const found = await waves.diff(file, { scope })
    expect(found).toMatchObject({
      changes: { changed: 1, moved: 1, added: 1, rejected: 1 },
      rows: 5,
      leftOut: 1,
      removed: { count: 1, stored: 4 },
      stopped: undefined,
    })
    expect(await ndjson(found.plans[0]?.plan)).toEqual([
      { reference: 'k2', customer: 'c2', account: 'eu', change: 'changed', line: 3 },
      { reference: 'k3', customer: 'c3', account: 'eu', change: 'moved', line: 4 },
      { reference: 'k5', customer: 'c5', account: 'eu', change: 'added', line: 5 },
      { reference: 'k6', change: 'rejected', line: 6 },
      { reference: 'k4', customer: 'c4', account: 'eu', change: 'removed' },
    ])
    expect(await ndjson(found.releases)).toEqual([
      {
        reference: 'k4',
        provider: 'shop',
        provider_account: 'eu',
        customer_id: 'c4',
        card_id: 'k4',
        action: 'RELEASE',
      },
    ])
    for (const path of [found.plans[0]?.plan, found.releases])
      expect(await readFile(path ?? '', 'utf8')).not.toMatch(/411111|MEYER|2035/)
    // The dry run leaves no files beside the file.
    expect((await readdir(dirname(file))).filter(name => name.startsWith(`${basename(file)}.`)).sort()).toEqual([
      `${basename(file)}.plan.ndjson`,
      `${basename(file)}.releases.ndjson`,
    ])
  })

  it('plans a row that changes nothing together with another of the same card, in whatever chunk', async () => {
    const scope = await holding([of(1)])
    const others = Array.from({ length: 7 }, (_, index) => of(20 + index))
    const file = await waves.put([of(1, { id: 'k11', year: 2036 }), ...others, of(1)])
    const found = await waves.diff(file, { scope }, 'partial')
    expect(await ndjson(found.plans[0]?.plan)).toContainEqual({
      reference: 'k1',
      customer: 'c1',
      account: 'eu',
      change: 'unchanged',
      line: 10,
    })
    await waves.apply(file, found, { scope })
    expect((await waves.state(scope, 2))['card 1']).toBe('2031 ACTIVE')
  })

  it('finds nothing to do in a file that was migrated, and writes no files; those of an earlier diff go', async () => {
    const scope = await waves.newScope()
    const file = await waves.put([of(1), of(2)])
    const first = await waves.diff(file, { scope })
    expect(first).toMatchObject({
      changes: { added: 2 },
      plans: [{ file, plan: `${file}.plan.ndjson` }],
      releases: undefined,
    })
    await waves.migrate(file, { scope })
    expect(await waves.diff(file, { scope })).toMatchObject({
      changes: {},
      leftOut: 2,
      removed: { count: 0, stored: 2 },
      plans: [],
      releases: undefined,
    })
    expect(await readdir(dirname(file))).not.toContain(`${basename(file)}.plan.ndjson`)
  })

  it('removes nobody of an account that the file does not name, nor by a row without a card', async () => {
    const scope = await holding([of(1), of(2, { account: 'us' }), of(3), of(4)])
    const file = await waves.put([of(1), of(3, { card: '' }), of(4, { kind: 'bank' })])
    expect((await waves.diff(file, { scope })).removed).toEqual({ count: 0, stored: 3 })
  })

  it('removes nobody where a row does not say whose card it is: it stops, before a row is sent', async () => {
    const scope = await holding([of(1)])
    const file = await waves.put([of(2), 'k3,eu,c3,card'])
    await expect(waves.diff(file, { scope })).rejects.toThrow(
      /1 row of .* \(the first at line 3\) can't be read, so it isn't known whose cards are gone\. .*leave --complete out/,
    )
    expect(await waves.diff(file, { scope }, 'partial')).toMatchObject({ removed: undefined, changes: { added: 1 } })
  })

  it('compares only what --only lists, and finds a row without a reference by its place', async () => {
    const scope = await holding([of(1), of(2), of(3)])
    const list = join(installation.dataDir, 'customers.txt')
    await writeFile(list, 'customer\nc1\nc3\n')
    const { readOnly } = await import('../../../producers/rows/only/read.ts')
    const file = await waves.put([of(1, { year: 2039 }), of(2, { year: 2039 })])
    const found = await waves.diff(file, { scope, only: await readOnly(list) })
    expect(found).toMatchObject({ changes: { changed: 1 }, removed: { count: 1, stored: 2 } })
    const unnamed = await waves.put([{ card: 7 }, of(1)])
    const plain = await waves.diff(unnamed, { scope }, 'partial')
    expect(await ndjson(plain.plans[0]?.plan)).toEqual([
      { change: 'added', line: 2, input_sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    ])
    await waves.apply(unnamed, plain, { scope })
    expect(await waves.state(scope, 8)).toHaveProperty('card 7')
    // The plan fits only the file for which it was made.
    await expect(waves.apply(await waves.put([{ card: 6 }, of(1)]), plain, { scope })).rejects.toThrow(
      /names lines of another file/,
    )
  })

  it('compares the parts of one export together, and plans each for itself', async () => {
    const scope = await holding([of(1), of(2), of(3), of(4), of(5)])
    const list = join(installation.dataDir, 'parts.txt')
    await writeFile(list, 'k1\nk2\nk3\nk4\nk9\n')
    const { readOnly } = await import('../../../producers/rows/only/read.ts')
    const parts = [await waves.put([of(1), of(2, { id: 'k12', year: 2037 })]), await waves.put([of(2), of(3)])]
    const found = await waves.diff(parts, { scope, only: await readOnly(list) })
    expect(found).toMatchObject({ rows: 4, leftOut: 3, removed: { count: 1, stored: 4 } })
    expect(found.listing).toEqual({ listed: 5, found: 3, missing: ['"k4"', '"k9"'] })
    const whole = await waves.diff(parts, { scope })
    expect(whole).toMatchObject({ changes: { added: 1, unchanged: 1 }, leftOut: 2, removed: { count: 2, stored: 5 } })
    const [first, second] = parts as [string, string]
    const nameOf = (line: unknown) => (line as { reference: string }).reference
    expect(whole.plans.map(({ file }) => file)).toEqual(parts)
    // The owners who are gone stand in the first plan; one card that two parts have is planned in both.
    expect((await ndjson(`${first}.plan.ndjson`)).map(nameOf)).toEqual(['k12', 'k4', 'k5'])
    expect((await ndjson(`${second}.plan.ndjson`)).map(nameOf)).toEqual(['k2'])
    await waves.apply(first, whole, { scope })
    expect(await waves.state(scope, 6)).toMatchObject({ 'card 2': '2031 ACTIVE' })
    expect(await waves.diff(parts, { scope })).toMatchObject({ removed: { count: 0 }, releases: undefined })
  })

  it('writes nothing if it is stopped, and leaves none of an earlier diff', async () => {
    const scope = await holding([of(1)])
    const file = await waves.put([of(2)])
    await waves.diff(file, { scope }, 'partial')
    const stopped = await openWaves(installation, AbortSignal.abort())
    expect(await stopped.diff(file, { scope })).toMatchObject({ stopped: 'interrupted', plans: [] })
    await waves.diff(file, { scope }, 'partial')
    expect(await waves.diff(file, { scope }, { rows: 0 })).toMatchObject({ stopped: 'removed', plans: [] })
    expect((await readdir(dirname(file))).filter(name => name.startsWith(`${basename(file)}.`))).toEqual([])
  })

  it('is run by its command, which says what to run next, and stops where too many are gone', async () => {
    const scope = await holding([of(1), of(2), of(3)])
    const profile = join(installation.dataDir, 'shop.json')
    await writeFile(profile, JSON.stringify(SHOP))
    const file = await waves.put([of(1), of(4)])
    const tokenmill = (words: readonly string[]) => runCommand(words, { env: installation.env })
    const named = ['--scope', scope, '--client', installation.clientFile]
    const words = ['migrate', 'diff', file, '--from', profile, ...named, '--complete']
    const stopped = await tokenmill(words)
    expect(stopped).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/2 of 3 stored owners are not in .*and nothing was written: see whether/),
    })
    expect(await readdir(dirname(file))).not.toContain(`${basename(file)}.plan.ndjson`)
    const done = await tokenmill([...words, '--max-removed', '70%', '--on-orphan', 'delete'])
    expect(done, done.stderr).toMatchObject({ code: 0 })
    expect(done.stdout).toMatch(/added +1\nchanges nothing +1\nremoved +2 of 3 stored\n/)
    expect(done.stderr).toContain(`migrate ${file} --only ${file}.plan.ndjson`)
    const next = ['migrate', file, '--from', profile, ...named, '--only', `${file}.plan.ndjson`, '--json']
    const applied = await tokenmill(next)
    expect(applied, applied.stderr).toMatchObject({ code: 0 })
    expect(JSON.parse(applied.stdout)).toMatchObject({ created: 1, skipped: 1 })
    // The id is new for each diff: owners of the same file of releases may have come back since.
    const [, id = ''] = /releases\.ndjson .* --batch-id (releases-[0-9a-f-]{36})\n/.exec(done.stderr) ?? []
    const again = await tokenmill([...words, '--max-removed', '70%', '--on-orphan', 'delete'])
    expect(again.stderr).toContain('--batch-id releases-')
    expect(again.stderr).not.toContain(id)
    const releases = ['migrate', `${file}.releases.ndjson`, '--record-kind', 'reference', ...named, '--json']
    const released = await tokenmill([...releases, '--batch-id', id])
    expect(released, released.stderr).toMatchObject({ code: 0 })
    expect(JSON.parse(released.stdout)).toMatchObject({ updated: 2 })
    expect(Object.keys(await waves.state(scope, 5)).sort()).toEqual(['card 1', 'card 4', 'eu/c1/k1', 'eu/c4/k4'])
    const { rows } = await installation.vault.store.query<{ subject: string }>({
      text: `select subject from tokenmill.audit where action = 'references.compare'`,
    })
    expect(rows.every(({ subject }) => subject === scope)).toBe(true)
    const plain = await tokenmill(['migrate', 'diff', file, '--map', profile, ...named, '--complete'])
    expect(plain).toMatchObject({ code: 64 })
    expect(await tokenmill(['migrate', 'diff', '-', '--from', profile, ...named])).toMatchObject({ code: 64 })
  })

  it('writes no card data into the files that it makes in between', async () => {
    const { openGroups } = await import('../../../producers/diff/groups.ts')
    const groups = openGroups({ memoryBytesMax: 16, under: installation.dataDir })
    try {
      groups.add(0, [`card ${testPan(1)}`, lineOf(of(1))])
      const [folder = ''] = (await readdir(installation.dataDir)).filter(name => /^tokenmill-\w{6}$/.test(name))
      const files = await readdir(join(installation.dataDir, folder))
      expect(files.length).toBeGreaterThan(0)
      for (const name of files)
        expect((await readFile(join(installation.dataDir, folder, name))).toString('latin1')).not.toContain('411111')
    } finally {
      groups.close()
    }
  })
})
