// Acts on keys that take two operators: who may confirm, for how long, and that the database's owner can't forge a
// confirmation.
import { readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import * as confirmations from '../../../src/store/access/confirmations.ts'
import * as keks from '../../../src/store/access/keks.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { cli } from '../command-bench.ts'
import { confirmationIn, openTwoOperators, type TwoOperators } from './two-operators.ts'

describeStore('an act on keys', engine => {
  let installation: Installation
  let operators: TwoOperators
  let kekId: string
  let forget: string[]
  beforeAll(async () => {
    installation = await openInstallation(engine)
    operators = await openTwoOperators(installation)
  })
  afterAll(() => installation?.close())
  let count = 0
  beforeEach(async () => {
    count += 1
    kekId = `kek-${String(count).padStart(16, '0')}`
    await keks.insert(installation.vault.store, { kekId, state: 'PENDING', probe: Buffer.from('probe') })
    forget = ['key', 'forget', 'kek', kekId, ...operators.signed]
  })

  const run = (words: string[]) => cli(words, { env: installation.env })
  const ask = async <R>(text: string, values: unknown[] = []) =>
    (await installation.vault.store.query<R>({ text, values })).rows
  const confirm = (id: string, who = operators.others) => run(['key', 'confirm', id, ...who, '--yes'])
  const actsOf = (subject: string) =>
    ask<{ action: string; outcome: string; why: string | null }>(
      `select action, outcome, detail->>'why' as why from tokenmill.audit
where subject = $1 or detail->>'of' = $1 order by audit_id`,
      [subject],
    )

  it('waits for another operator, is done once that one confirmed, and every step is recorded', async () => {
    const id = confirmationIn(await run(forget))
    expect(confirmationIn(await run(forget))).toBe(id)
    const confirmed = await confirm(id)
    expect(confirmed).toMatchObject({
      status: 0,
      stdout: expect.stringContaining(`kek.forget of ${kekId} is confirmed`),
    })
    expect(await confirm(id)).toMatchObject({ status: 1, stderr: expect.stringContaining('confirmed before') })
    expect(await run(forget)).toMatchObject({ status: 0 })
    expect(await confirm(id)).toMatchObject({ status: 1, stderr: expect.stringContaining('the act is done') })
    expect(await actsOf(kekId)).toEqual([
      { action: 'kek.forget', outcome: 'refused', why: 'unconfirmed' },
      { action: 'confirmation.ask', outcome: 'done', why: null },
      { action: 'kek.forget', outcome: 'refused', why: 'unconfirmed' },
      { action: 'confirmation.confirm', outcome: 'done', why: null },
      { action: 'confirmation.use', outcome: 'done', why: null },
      { action: 'kek.forget', outcome: 'done', why: null },
    ])
    const [done] = await ask<{ detail: unknown }>(
      `select detail from tokenmill.audit where subject = $1 and action = 'kek.forget' and outcome = 'done'`,
      [kekId],
    )
    expect(done?.detail).toMatchObject({
      confirmation: id,
      confirmed_by: expect.any(String),
      proof: expect.any(String),
    })
  })

  it('is confirmed with the claim that no backup is left, or without it, and the reason is shown', async () => {
    const bold = [...forget, '--backups-are-gone', '--reason', 'the safe was emptied']
    const id = confirmationIn(await run(bold))
    const shown = await run(['key', 'confirm', id, ...operators.others, '--yes', '--json'])
    expect(JSON.parse(shown.stdout)).toMatchObject({
      subject: `${kekId} --backups-are-gone`,
      reason: 'the safe was emptied',
    })
    expect(confirmationIn(await run(forget))).not.toBe(id)
    expect(await run(bold)).toMatchObject({ status: 0 })
  })

  it('holds for one act: the next one of the same name asks again', async () => {
    const id = confirmationIn(await run(forget))
    await confirm(id)
    expect(await run(forget)).toMatchObject({ status: 0 })
    await keks.insert(installation.vault.store, { kekId, state: 'PENDING', probe: Buffer.from('probe') })
    expect(confirmationIn(await run(forget))).not.toBe(id)
  })

  it('is confirmed for one act, also where the owner of the database puts back what it was before', async () => {
    const again = () => keks.insert(installation.vault.store, { kekId, state: 'PENDING', probe: Buffer.from('probe') })
    const restore = async (id: string) => {
      await ask('delete from tokenmill.confirmation where confirmation_id = $1', [id])
      await ask('insert into tokenmill.confirmation select * from public.kept')
    }
    for (const revive of [
      (id: string) => ask('update tokenmill.confirmation set used_at = null where confirmation_id = $1', [id]),
      restore,
      async (id: string) => {
        await restore(id)
        await ask(`delete from tokenmill.audit where action = 'confirmation.use' and subject = $1`, [id])
      },
      async (id: string) => {
        await restore(id)
        await ask(
          `update tokenmill.audit set action = 'confirmation.ask' where action = 'confirmation.use' and subject = $1`,
          [id],
        )
      },
    ]) {
      const id = confirmationIn(await run(forget))
      await confirm(id)
      await ask('create table public.kept as select * from tokenmill.confirmation where confirmation_id = $1', [id])
      expect(await run(forget)).toMatchObject({ status: 0 })
      await again()
      await revive(id)
      expect(confirmationIn(await run(forget))).not.toBe(id)
      await ask('delete from tokenmill.confirmation')
      await ask('drop table public.kept')
    }
  })

  it('is not done where the database keeps no row of its confirmation’s use', async () => {
    await confirm(confirmationIn(await run(forget)))
    await ask(`create function public.drop_use() returns trigger language plpgsql as $$ begin return null; end $$`)
    await ask(`create trigger drop_use before insert on tokenmill.audit for each row
when (new.action = 'confirmation.use') execute function public.drop_use()`)
    expect(await run(forget)).toMatchObject({ status: 78, stderr: expect.stringContaining('look for a trigger') })
    await ask('drop trigger drop_use on tokenmill.audit')
    expect(await run(forget)).toMatchObject({ status: 0 })
  })

  it('is not begun without an operator, nor confirmed by nobody', async () => {
    const unsigned = await run(['key', 'forget', 'kek', kekId])
    expect(unsigned).toMatchObject({ status: 64, stderr: expect.stringContaining('add --operator FILE') })
    const id = confirmationIn(await run(forget))
    expect(await confirm(id, [])).toMatchObject({ status: 64, stderr: expect.stringContaining('Add --operator FILE') })
    expect(await confirm('0000000000')).toMatchObject({ status: 1, stderr: expect.stringContaining('No act waits') })
  })

  it('is confirmed neither by the one who asked, nor by another client with the same key', async () => {
    const id = confirmationIn(await run(forget))
    expect(await confirm(id, operators.signed)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('The operator who asked can not confirm'),
    })
    const [, file = ''] = operators.signed
    const folder = join(installation.dataDir, 'twin')
    const own = JSON.parse(await readFile(file, 'utf8'))
    const key = JSON.parse(await readFile(resolve(file, '..', own.signing_key_file), 'utf8'))
    const { d: _, ...publicJwk } = key
    await writeFile(join(installation.dataDir, 'twin.jwk'), JSON.stringify({ ...publicJwk, kid: 'twin' }))
    const added = await run([
      ...['client', 'add', 'twin', '--entity', ENTITY, '--roles', 'ADMIN', '--out', folder],
      ...['--public-key', join(installation.dataDir, 'twin.jwk')],
    ])
    expect(added).toMatchObject({ status: 0 })
    await writeFile(join(folder, 'key.jwk'), JSON.stringify({ ...key, kid: 'twin' }), { mode: 0o600 })
    const twin = JSON.parse(await readFile(join(folder, 'client.json'), 'utf8'))
    await writeFile(join(folder, 'client.json'), JSON.stringify({ ...twin, signing_key_file: 'key.jwk' }))
    expect(await confirm(id, ['--operator', join(folder, 'client.json')])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('signs with the key of the one who asked'),
    })
    expect((await actsOf(id)).slice(1)).toEqual([
      { action: 'confirmation.confirm', outcome: 'refused', why: 'same_client' },
      { action: 'confirmation.confirm', outcome: 'refused', why: 'same_key' },
    ])
    expect(confirmationIn(await run(forget))).toBe(id)
  })

  it('is not done by another operator than the one who asked, though it is confirmed', async () => {
    await confirm(confirmationIn(await run(forget)))
    const theirs = await run(['key', 'forget', 'kek', kekId, ...operators.others])
    expect(confirmationIn(theirs)).toMatch(/^[0-9a-f]{10}$/)
  })

  it('is absent where the owner of the database wrote, changed or prolonged the row', async () => {
    const id = confirmationIn(await run(forget))
    const forged = `confirmed_by = 'nobody', confirmed_key = 'none', confirmed_at = now(), audit_seq = 0, audit_hash = '\\x'`
    await ask(`update tokenmill.confirmation set ${forged} where confirmation_id = $1`, [id])
    const second = confirmationIn(await run(forget))
    expect(second).not.toBe(id)
    await confirm(second)
    for (const change of [
      `subject = subject || '0'`,
      `expires_at = expires_at + interval '1 hour'`,
      `asked_key = 'another'`,
      `confirmed_by = 'another'`,
      `audit_seq = audit_seq + 1`,
    ]) {
      await ask('create table public.kept as select * from tokenmill.confirmation')
      await ask(`update tokenmill.confirmation set ${change} where confirmation_id = $1`, [second])
      expect([change, (await run(forget)).status]).toEqual([change, 5])
      await ask('delete from tokenmill.confirmation')
      await ask('insert into tokenmill.confirmation select * from public.kept')
      await ask('drop table public.kept')
    }
    expect(await run(forget)).toMatchObject({ status: 0 })
  })

  it('is not asked for again and again, but expires after a day, which is recorded', async () => {
    const { store } = installation.vault
    const id = confirmationIn(await run(forget))
    const [row] = await ask<{ hours: number }>(
      `select extract(epoch from expires_at - asked_at)::int / 3600 as hours from tokenmill.confirmation where confirmation_id = $1`,
      [id],
    )
    expect(row?.hours).toBe(24)
    await ask(`update tokenmill.confirmation set expires_at = now() - interval '1 s' where confirmation_id = $1`, [id])
    expect(await confirm(id)).toMatchObject({ status: 1 })
    expect(confirmationIn(await run(forget))).not.toBe(id)
    await confirmations.expire(store)
    expect((await actsOf(id)).at(-1)).toEqual({ action: 'confirmation.expire', outcome: 'done', why: null })
    expect(await ask('select from tokenmill.confirmation where confirmation_id = $1', [id])).toEqual([])
  })
})
