// What an owner of the database, who has no key, can make a gateway believe. Workers run, as they do in an installation.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type JsonWebKey } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openSignedRights } from '../../../../producers/gateway/signed-rights.ts'
import { Fault } from '../../../../src/errors.ts'
import { sealLiveKeys } from '../../../../src/job/answer/live-keys.ts'
import { sealResult } from '../../../../src/job/answer/result.ts'
import { type InstallationKeys, openSigned } from '../../../../src/job/envelope/installation-jws.ts'
import { makeSigningKey } from '../../../../src/vault/client-key.ts'
import { sealStatement } from '../../../../src/vault/key-statement.ts'
import { cli } from '../../../cli/command-bench.ts'
import { describeEngines } from '../../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../../support/installation.ts'
import { testPan } from '../../../support/test-pan.ts'
import { until } from '../../../support/until.ts'
import { BATCHES, basicOf, CARD, type Caller, openGatewayFor } from '../bundle.ts'

const NOBODY = `${CARD}/t${'0'.repeat(26)}`
const OTHER = '7b2a6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'

describeEngines('an owner of the database', engine => {
  let installation: Installation
  let caller: Caller
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['interactive'] })
    caller = await openGatewayFor(installation)
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
  })

  const rows = async (text: string, values: unknown[] = []) =>
    (await installation.vault.store.query<Record<string, unknown>>({ text, values })).rows
  const post = (batchId: string) =>
    caller.call('POST', `${BATCHES}?token_scope=${installation.scope}&batch_id=${batchId}`, {
      headers: { 'content-type': 'text/csv' },
      body: `card_number,expiry_month,expiry_year\n${testPan(1)},12,2034\n`,
    })
  const captureKeys = () =>
    caller.call('GET', `/oidc/.well-known/capture-keys?entity_id=${ENTITY}`, { authorization: null })
  const jwks = async () => {
    const { body } = await caller.call('GET', '/.well-known/jwks.json', { authorization: null })
    return (body['keys'] as { kid: string }[]).map(({ kid }) => kid)
  }
  const readyz = async () => (await caller.call('GET', '/readyz', { authorization: null })).text
  const status = async (clientFile: string, path = NOBODY) =>
    (await caller.call('GET', path, { authorization: await basicOf(clientFile) })).status

  it("can't have clear cards encrypted to a capture key of their own, or have it handed out", async () => {
    expect(await post('before')).toMatchObject({ status: 202 })
    const own = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' })
    const replaced = await rows(
      `update tokenmill.capture_key
       set public_key = $1
       where type <> 'pgp'
       returning alias, (select k.public_key from tokenmill.capture_key k where k.key_id = capture_key.key_id) as former`,
      [JSON.stringify(own)],
    )
    expect(replaced).toHaveLength(1)
    expect(await post('after')).toMatchObject({ status: 500 })
    expect(await rows(`select from tokenmill.intake where batch_id = 'after'`)).toEqual([])
    const shown = await captureKeys()
    expect(shown.body).toMatchObject({ keys: [], openpgp: [{}] })
    expect(shown.text).not.toContain(own.n)

    // A statement about another key of the installation doesn't fit either.
    await rows(
      `update tokenmill.capture_key set statement = (select statement from tokenmill.capture_key where type = 'pgp') where type <> 'pgp'`,
    )
    expect(await post('after')).toMatchObject({ status: 500 })
    await rows(`update tokenmill.capture_key set state = 'RETIRED', retired_at = now() where type = 'pgp'`)
    expect((await captureKeys()).status).toBe(500)
    await rows(`update tokenmill.capture_key set state = 'ACTIVE', retired_at = null where type = 'pgp'`)

    // A worker states the key anew once its row is as tokenmill wrote it.
    const [{ alias, former } = {}] = replaced
    await rows('update tokenmill.capture_key set public_key = $1 where alias = $2', [former, alias])
    expect((await cli(['capture-key', 'show', String(alias)], { env: installation.env })).status).toBe(0)
    expect(await post('after')).toMatchObject({ status: 202 })
  })

  it("can't show a signing key of their own in the JWKS, or have its results believed", async () => {
    const before = await jwks()
    const forged = makeSigningKey()
    const { kid, publicJwk } = forged
    const privateKey = createPrivateKey({ key: forged.privateJwk.reveal() as JsonWebKey, format: 'jwk' })
    const own = { kid, alg: forged.alg, privateKey }
    const insert = (statement: string | null) =>
      rows(
        `insert into tokenmill.signing_key (kid, alg, public_jwk, state, statement, active_at, retired_at)
         values ($1, 'EdDSA', $2, 'RETIRED', $3, now() - interval '1 hour', now())
         on conflict (kid) do update set statement = excluded.statement`,
        [kid, JSON.stringify(publicJwk), statement],
      )
    const { trusted, settings, signingKey } = caller.gateway.deps
    const announcing = { audience: settings.audience, publicJwk, from: Date.now(), now: Date.now() }
    // Without a statement, and with one that no believed key signed.
    for (const statement of [null, sealStatement(announcing, own)]) {
      await insert(statement)
      await trusted.list()
      expect(await jwks()).toEqual(before)
      const about = { clientId: signingKey.clientId, resultId: 'r', revision: 1 }
      const result = sealResult('{}', about, own)
      const opens = (keys: InstallationKeys) => openSigned(result.jws, 'tokenmill-result+jwt', keys)
      expect(opens(new Map([[kid, { alg: own.alg, publicKey: createPublicKey(privateKey) }]]))).toBeDefined()
      expect(opens(trusted.keys)).toBeUndefined()
    }
    // A key of their own under the id of the installation's.
    const [real] = await rows('select kid, public_jwk as jwk from tokenmill.signing_key where kid = $1', [before[0]])
    await rows('update tokenmill.signing_key set public_jwk = $1 where kid = $2', [
      JSON.stringify(publicJwk),
      before[0],
    ])
    expect(await jwks()).toEqual([])
    expect(await readyz()).toContain('no signing key in the database is believed here')
    await rows('update tokenmill.signing_key set public_jwk = $1 where kid = $2', [
      JSON.stringify(real?.['jwk']),
      before[0],
    ])
    await rows('delete from tokenmill.signing_key where kid = $1', [kid])
    expect(await jwks()).toEqual(before)
  })

  it("can't give a client another role or entity, another public half, or a client", async () => {
    const { clientFile, credentials } = await installation.addClient('reader', { roles: ['TOKEN_READ'] })
    const { clientId } = credentials.signingKey
    expect(await status(clientFile)).toBe(404)
    const change = (columns: string) => rows(`update tokenmill.client set ${columns} where client_id = $1`, [clientId])
    const untilStatus = (expected: number, path?: string) =>
      until(async () => (await status(clientFile, path)) === expected, { what: `status ${expected}` })

    await change(`roles = array['TOKEN_READ', 'TOKEN_WRITE']`)
    await untilStatus(401)
    await change(`roles = array['TOKEN_READ'], entities = array['${OTHER}']::uuid[]`)
    expect(await status(clientFile)).toBe(401)
    await change(`entities = array['${ENTITY}']::uuid[]`)
    await untilStatus(404)

    await rows('update tokenmill.client_key set public_jwk = $1 where client_id = $2', [
      JSON.stringify(makeSigningKey().publicJwk),
      clientId,
    ])
    const keysOf = async () => (await caller.gateway.deps.directory.user(credentials.userId))?.keys.length
    await until(async () => (await keysOf()) === 0, { what: 'that the changed key is not believed' })

    const minted = { user: '0b1c7a52-6f0e-4a6e-9d51-2f6f6a1f3c11', id: `c${'0'.repeat(25)}` }
    await rows(
      `insert into tokenmill.client (client_id, name, user_id, entities, roles, alg, system, names, mac, mac_version)
       select $1, 'minted', $2, entities, roles, alg, system, names, mac, mac_version
       from tokenmill.client
       where client_id = $3`,
      [minted.id, minted.user, clientId],
    )
    expect(await caller.gateway.deps.directory.user(minted.user)).toBeUndefined()
    const text = await (await fetch(`http://127.0.0.1:${caller.gateway.opsPort}/metrics`)).text()
    expect(text).toMatch(/^tokenmill_ungranted_rows_total\{kind="client",process="gateway"\} [1-9]/m)
  })

  it("can't have the tokens of a scope shown to another entity", async () => {
    const { clientFile } = await installation.addClient('other entity', { entity: OTHER })
    const made = await caller.put({ cardNumber: testPan(3), expiryMonth: 12, expiryYear: 2034 })
    expect(made).toMatchObject({ status: 200 })
    const path = `${CARD}/${made.body['reuse_token']}`
    expect(await status(clientFile, path)).toBe(404)
    const give = (entityId: string) =>
      rows('update tokenmill.scope set entity_id = $1 where token_scope = $2', [entityId, installation.scope])
    await give(OTHER)
    const { directory } = caller.gateway.deps
    await until(async () => (await directory.scope(installation.scope))?.entityId !== ENTITY, {
      what: 'that the gateway reads the scope again',
    })
    expect(await directory.scope(installation.scope)).toBeUndefined()
    expect(await status(clientFile, path)).toBe(404)
    await give(ENTITY)
    await until(async () => (await caller.call('GET', path)).status === 200, { what: 'the token' })
    // A scope of their own, with the code of another one.
    const minted = '0b1c7a52-6f0e-4a6e-9d51-2f6f6a1f3c12'
    await rows(
      `insert into tokenmill.scope (
         token_scope, entity_id, par, network_tokens, requestor, auto_provision, bin_digits, keep_billing, mac, mac_version
       )
       select $1, $2, par, network_tokens, requestor, auto_provision, bin_digits, keep_billing, mac, mac_version
       from tokenmill.scope
       where token_scope = $3`,
      [minted, OTHER, installation.scope],
    )
    expect(await directory.scope(minted)).toBeUndefined()
  })

  it("can't have rows believed by taking the signed list away", async () => {
    const { clientFile, credentials } = await installation.addClient('listed', { roles: ['TOKEN_READ'] })
    expect(await status(clientFile)).toBe(404)
    await rows(`update tokenmill.client set roles = array['TOKEN_READ', 'TOKEN_WRITE'] where client_id = $1`, [
      credentials.signingKey.clientId,
    ])
    const setList = (list: string | null) =>
      rows(`update tokenmill.live_list set list = $1, told_change = change, told_at = now() + interval '1 day'`, [list])
    await setList(null)
    await until(async () => (await status(clientFile)) === 401, { what: 'status 401' })
    // Nor by a list of their own.
    const key = makeSigningKey()
    const privateKey = createPrivateKey({ key: key.privateJwk.reveal() as JsonWebKey, format: 'jwk' })
    const head = { aud: caller.gateway.deps.settings.audience, iat: Date.now() / 1000, seq: 1_000_000, features: [] }
    const list = sealLiveKeys(head, { kid: key.kid, alg: key.alg, privateKey })
    await setList(list)
    const { clock, trusted, log } = caller.gateway.deps
    const { audience } = caller.gateway.deps.settings
    const rights = await openSignedRights({ store: installation.vault.store, audience, trusted, clock, log })
    expect(rights.reasons()).toHaveLength(1)
    await expect(rights.has('anything')).rejects.toThrow(new Fault('rights_unknown'))
    await rights.stop()
  })
})

describeEngines('a gateway', engine => {
  it('follows the signing key that workers turn to, also after a restart, by what a pinned key announced', async () => {
    const installation = await openInstallation(engine)
    const keys = join(installation.dataDir, 'system', 'installation-keys.json')
    const learned = join(installation.dataDir, 'system', 'installation.new-keys.json')
    try {
      await installation.openWorkers({ roles: ['interactive'] })
      const pinned = JSON.parse(await readFile(keys, 'utf8')) as { keys: { kid: string }[] }
      const [first] = pinned.keys
      expect(pinned.keys).toHaveLength(1)
      const run = (...words: string[]) => cli(words, { env: installation.env })
      const caller = await openGatewayFor(installation)
      expect((await run('key', 'rotate', 'signing')).status).toBe(0)
      const turned = await run('key', 'rotate', 'signing', '--now', '--yes')
      expect(turned, turned.stderr).toMatchObject({ status: 0 })
      const [next] = (
        await installation.vault.store.query<{ kid: string }>({
          text: `select kid from tokenmill.signing_key where state = 'ACTIVE'`,
        })
      ).rows
      expect(next?.kid).not.toBe(first?.kid)
      const put = await caller.put({ cardNumber: testPan(2), expiryMonth: 12, expiryYear: 2034 })
      expect(put).toMatchObject({ status: 200 })
      await until(async () => (await readFile(learned, 'utf8').catch(() => '')) !== '', { what: 'the file' })
      await caller.close()

      // Without the store's word, too.
      await installation.vault.store.query({ text: 'update tokenmill.signing_key set statement = null' })
      const again = await openGatewayFor(installation)
      expect([...again.gateway.deps.trusted.keys.keys()]).toEqual([first?.kid, next?.kid])
      await again.close()

      // The pin is replaced after a compromise: the former key is taken out, and `schema upgrade` adds the one that signs.
      await writeFile(keys, JSON.stringify({ keys: [] }))
      expect((await run('schema', 'upgrade', '--json')).json<{ files: string[] }>().files).toEqual([keys])
      expect((await run('schema', 'upgrade', '--json')).json<{ files: string[] }>().files).toEqual([])
      const after = await openGatewayFor(installation)
      expect([...after.gateway.deps.trusted.keys.keys()]).toEqual([next?.kid])
      await after.close()

      // Without the pin no role that needs it starts.
      await rm(keys)
      await expect(openGatewayFor(installation)).rejects.toThrow(/installation-keys\.json does not exist/)
      expect((await run('schema', 'upgrade', '--json')).json<{ files: string[] }>().files).toEqual([keys])
      await rm(learned)
      const last = await openGatewayFor(installation)
      expect(last.gateway.deps.trusted.keys.size).toBe(2)
      await last.close()
    } finally {
      await installation.close()
    }
  })
})
