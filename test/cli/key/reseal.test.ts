// `tokenmill key reseal` and `key destroy`: what they print, and what they refuse.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openRingNow } from '../../../cli/open/key-ring.ts'
import { openLog } from '../../../src/log.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import * as reseals from '../../../src/store/reseal/reseals.ts'
import type { LiveRing } from '../../../src/vault/ring/key-ring.ts'
import { workReseal } from '../../../workers/reseal/reseal.ts'
import { runCommand } from '../../support/command.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { insertTokens, openAll } from '../../workers/reseal/tokens.ts'
import { type TurnedVault, turnKey } from '../../workers/reseal/turn-key.ts'
import { openTwoOperators, type TwoOperators } from './two-operators.ts'

const TOKENS = 1_200
/** Finds a statement that waits for a lock to count copies. */
const COUNTING = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
and query like '%count(*)%before_image%'`
const PACE = {
  rowsPerSecondMax: 1_000_000,
  replicaLagMsMax: 10_000,
  workMsMax: 60_000,
  walBytesPerSecondMax: 1e12,
  writersMs: 0,
}

describeStore('the keys of a vault', engine => {
  let installation: Installation
  let turned: TurnedVault
  let operators: TwoOperators
  /** The ring of a process that doesn't read the next key. */
  let late: LiveRing
  beforeAll(async () => {
    installation = await openInstallation(engine)
    operators = await openTwoOperators(installation)
    await insertTokens(installation.vault.store, installation.vault.ring, installation.scope, TOKENS)
    late = await openRingNow(installation.vault.keks, installation.vault.store, installation.vault.lives)
    turned = await turnKey(installation.vault, 'seal')
  })
  afterAll(() => installation?.close())

  const cli = (...words: string[]) => runCommand(['key', ...words], { env: installation.env })
  const ask = <R>(text: string) => installation.vault.store.query<R>({ text })
  const deps = () => ({ ...installation.vault, ...turned, clock: Date.now, log: openLog('silent') })

  describe('key reseal', () => {
    it('refuses a purpose under which nothing that lasts is sealed', async () => {
      const { code, stderr } = await cli('reseal', 'fingerprint')
      expect({ code, stderr }).toEqual({
        code: 64,
        stderr: expect.stringContaining('the purposes are seal, network-token, three-ds'),
      })
    })

    it('refuses while a live process lacks the key, and names its host', async () => {
      await ask(`insert into tokenmill.process (process_id, role, host, version, connections, keys, seen_at)
values (gen_random_uuid(), 'bulk', 'late-host', '0.3.0', 1, '{seal/1}', now() + interval '1 hour')`)
      const { code, stderr } = await cli('reseal', 'seal')
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('late-host (bulk)') })
      await ask(`delete from tokenmill.process where host = 'late-host'`)
    })

    it('begins, is cancelled with its place kept, and goes on from there', async () => {
      const { store } = installation.vault
      expect(await cli('reseal', 'seal')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^seal: pass 1, 0 /) })
      let sets = 0
      await workReseal(deps(), PACE, () => {
        sets += 1
        return sets > 1
      })
      const held = await reseals.find(store, 'seal')
      expect(held).toMatchObject({ state: 'RUNNING', rowsDone: 500, atColumn: 'token.sealed' })
      expect((await cli('reseal', 'seal', '--cancel')).stdout).toMatch(/cancelled at .*, 500 rows sealed anew/)
      expect(await workReseal(deps(), PACE)).toBeUndefined()
      const again = await cli('reseal', 'seal', '--json', '--reason', 'the night is quiet')
      expect(again.stderr).toContain('It goes on where it was cancelled')
      expect(JSON.parse(again.stdout)).toMatchObject({ purpose: 'seal', version: 2, state: 'RUNNING', rows_done: 500 })
      // No row is left, but a process that reads the new key late may still write under the former one. The test does
      // so.
      await workReseal(deps(), { ...PACE, writersMs: 60_000 })
      expect(await reseals.find(store, 'seal')).toMatchObject({ state: 'RUNNING', pass: 1, rowsDone: TOKENS })
      await insertTokens(store, late, installation.scope, 1, TOKENS)
      await ask('update tokenmill.reseal set due_at = now()')
      await workReseal(deps(), PACE)
      expect(await reseals.find(store, 'seal')).toMatchObject({ state: 'DONE', rowsDone: TOKENS + 1, passFound: 0 })
      expect(await openAll(store, turned.ring)).toEqual({ 2: TOKENS + 1 })
      const { rows } = await ask<{ action: string; reason: string | null }>(
        `select action, detail->>'reason' as reason from tokenmill.audit where action like 'data-key.reseal%' and outcome = 'done' order by audit_id`,
      )
      expect(rows).toEqual([
        { action: 'data-key.reseal', reason: null },
        { action: 'data-key.reseal-cancel', reason: null },
        { action: 'data-key.reseal', reason: 'the night is quiet' },
      ])
    })

    it('counts a row that can not be opened, names it, and is not done', async () => {
      const { store } = installation.vault
      await ask(
        `update tokenmill.token set seal_version = 1 where token_id = (select min(token_id::text)::uuid from tokenmill.token)`,
      )
      await cli('reseal', 'seal')
      await workReseal(deps(), PACE)
      expect((await cli('reseal', 'seal')).stdout).toMatch(/a row can't be opened: token 0/)
      expect(await reseals.find(store, 'seal')).toMatchObject({ state: 'RUNNING', cleanAt: null })
      await ask('update tokenmill.token set seal_version = 2 where seal_version = 1')
      await ask('update tokenmill.reseal set due_at = now()')
      await workReseal(deps(), PACE)
      expect(await reseals.find(store, 'seal')).toMatchObject({ state: 'DONE' })
    })
  })

  describe('key destroy', () => {
    const destroy = (...words: string[]) => cli('destroy', ...words, '--yes', ...operators.signed)

    it('refuses the key in use, and one that is not there', async () => {
      expect((await destroy('seal', '2')).stderr).toContain('seal/2 is in use')
      expect((await destroy('seal', '3')).stderr).toContain('There is no key seal/3')
    })

    it('refuses every key of cards and of audit rows, in use or not', async () => {
      for (const purpose of ['fingerprint', 'audit'] as const) {
        await turnKey(installation.vault, purpose)
        for (const version of ['1', '2'])
          expect(await destroy(purpose, version, '--backups-are-gone')).toEqual({
            code: 1,
            stdout: '',
            stderr: expect.stringContaining(`${purpose}/${version} makes keyed hashes`),
          })
        const { rows } = await ask(`select state from tokenmill.data_key where purpose = '${purpose}' order by version`)
        expect(rows).toEqual([{ state: 'DECRYPT_ONLY' }, { state: 'ACTIVE' }])
      }
    })

    it('refuses while a row or a copy names it, for a day after the proof, and while backups need it', async () => {
      await ask(`insert into tokenmill.before_image (receipt_id, token_id, sealed, key_version, seal_version)
values (gen_random_uuid(), gen_random_uuid(), '', 1, 1)`)
      expect((await destroy('seal', '1')).stderr).toContain('must be 24 h old')
      await ask(`update tokenmill.reseal set clean_at = clean_at - interval '2 days'`)
      expect((await destroy('seal', '1')).stderr).toContain('TOKENMILL_BACKUP_DAYS')
      expect((await destroy('seal', '1', '--backups-are-gone')).stderr).toContain('1 in before_image.sealed')
      await ask('delete from tokenmill.before_image')
      await ask(`update tokenmill.reseal set state = 'CANCELLED'`)
      expect((await destroy('seal', '1')).stderr).toContain("It isn't proved")
      await ask(`update tokenmill.reseal set state = 'DONE', version = 1`)
      expect((await destroy('seal', '1')).stderr).toContain("It isn't proved")
      await ask('update tokenmill.reseal set version = 2')
    })

    it('leaves the key in use to the processes that reserve seals while it counts rows', async () => {
      const { store } = installation.vault
      await ask(`update tokenmill.reseal set clean_at = now() - interval '2 days'`)
      await ask(`insert into tokenmill.before_image (receipt_id, token_id, sealed, key_version, seal_version)
values (gen_random_uuid(), gen_random_uuid(), '', 1, 1)`)
      const counting = await store.transaction(async db => {
        await db.query({ text: 'lock table tokenmill.before_image in access exclusive mode' })
        const asked = destroy('seal', '1', '--backups-are-gone')
        await until(async () => (await ask(COUNTING)).rows.length > 0)
        await store.transaction(async other => {
          await other.query({ text: `set local lock_timeout = '500ms'` })
          expect(await dataKeys.reserve(other, 'seal', 2, 1)).toBeGreaterThan(0)
        })
        return { asked }
      })
      expect((await counting.asked).stderr).toContain('1 in before_image.sealed')
      await ask('delete from tokenmill.before_image')
    })

    it('erases the key, once, and every token opens without it', async () => {
      await operators.confirm(['key', 'destroy', 'seal', '1', '--backups-are-gone', '--yes'], installation.env)
      expect(await destroy('seal', '1', '--backups-are-gone')).toMatchObject({
        code: 0,
        stdout: 'seal/1 is destroyed.\n',
      })
      const { rows } = await ask(
        `select state, wrapped from tokenmill.data_key where purpose = 'seal' order by version`,
      )
      expect(rows).toEqual([
        { state: 'DESTROYED', wrapped: null },
        { state: 'ACTIVE', wrapped: expect.any(Buffer) },
      ])
      expect((await destroy('seal', '1')).stderr).toContain('destroyed before')
      const { rows: audit } = await ask(
        `select subject, detail from tokenmill.audit where action = 'data-key.destroy' and outcome = 'done'`,
      )
      expect(audit).toEqual([
        {
          subject: 'seal/1',
          detail: {
            backups_are_gone: true,
            epoch: expect.any(Number),
            confirmation: expect.any(String),
            confirmed_by: expect.any(String),
            proof: expect.any(String),
          },
        },
      ])
    })
  })
})
