// Every kind of sealed value, sealed anew: one row of each column in the catalogue, written as the product writes it and
// read as the product reads it.
import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openInstallationKey } from '../../../cli/open/installation-key.ts'
import type { Actor } from '../../../src/acts/act.ts'
import { beginReseal } from '../../../src/acts/key/reseal.ts'
import { Fault } from '../../../src/errors.ts'
import { openLog } from '../../../src/log.ts'
import { Secret } from '../../../src/secret.ts'
import * as signingKeys from '../../../src/store/access/signing-keys.ts'
import * as endpoints from '../../../src/store/event/endpoints.ts'
import { isReferenceProved } from '../../../src/store/provider/scheme-row.ts'
import * as schemeTokens from '../../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../../src/store/provider/stored-schemes.ts'
import { SEALED_COLUMNS, SEALED_NAMES, SEALING_PURPOSES } from '../../../src/store/reseal/sealed-columns.ts'
import * as authentications from '../../../src/store/three-ds/authentications.ts'
import * as contracts from '../../../src/store/three-ds/three-ds-contracts.ts'
import * as totalKeys from '../../../src/store/total/total-keys.ts'
import { makeJwtKey } from '../../../src/vault/three-ds-jwt.ts'
import { makeWebhookSecret } from '../../../src/vault/webhook-secret.ts'
import { openSealedCard, pendingRow } from '../../../workers/provider/pending-card.ts'
import { workReseal } from '../../../workers/reseal/reseal.ts'
import { NotReady, sealSetAnew } from '../../../workers/reseal/seal-anew.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { makeContract, makeRecord } from '../../three-ds/samples.ts'
import { insertTokens, openAll } from './tokens.ts'
import { type TurnedVault, turnKey } from './turn-key.ts'

const BY = { actor: { kind: 'machine', id: 'test' } satisfies Actor, reason: undefined }
const PACE = {
  rowsPerSecondMax: 1_000_000,
  replicaLagMsMax: 10_000,
  workMsMax: 60_000,
  walBytesPerSecondMax: 1e12,
  writersMs: 0,
}
const NUMBER = '4895370012003478'

describeStore('sealing anew', engine => {
  let installation: Installation
  let turned: TurnedVault
  const endpointId = randomUUID()
  const secrets = [makeWebhookSecret(), makeWebhookSecret()] as const
  const contract = makeContract('https://ds.example/')
  const nextContractKey = makeJwtKey()
  const record = makeRecord({ contractId: contract.contractId, state: 'C', secrets: new Secret({ cavv: 'AAAA' }) })
  const totalKey = new Secret(randomBytes(32))
  const provisionId = randomUUID()

  beforeAll(async () => {
    installation = await openInstallation(engine)
    const { store, ring } = installation.vault
    const { clientId } = installation.credentials.signingKey
    await ring.reserve(...SEALING_PURPOSES)
    await insertTokens(store, ring, installation.scope, 1)
    const endpoint = { endpointId, clientId, url: 'https://shop.example/', events: ['batch.finished' as const] }
    const secret = ring.sealWebhookSecret(secrets[0], endpointId)
    await endpoints.insert(store, { ...endpoint, secret })
    await endpoints.rotate(store, endpointId, ring.sealWebhookSecret(secrets[1], endpointId), 3_600_000)
    await contracts.insert(store, ring, contract)
    await contracts.rotateKey(store, ring, {
      contractId: contract.contractId,
      key: nextContractKey,
      formerMs: 3_600_000,
    })
    await authentications.insert(store, ring, record)
    await totalKeys.insert(store, 'shop', ring.sealTotalKey(totalKey, 'shop'))
    const card = { pan: new Secret(testPan(1)), expiryMonth: 12, expiryYear: 2031, cardHolderName: 'ZOË' }
    const token = { tokenId: randomUUID(), tokenScope: installation.scope }
    const about = { provisionId, clientId, provider: 'mdes', background: true }
    await schemeTokens.insertAll(store, [pendingRow(token, card, about, { ring, clock: Date.now })])
    const number = ring.sealNetworkToken(new Secret(NUMBER), otherPlace)
    const named = ring.sealReference({ ...otherPlace, provider: 'mdes', reference: 'r' })
    await store.query({
      text: `insert into tokenmill.scheme_token (provision_id, token_id, token_scope, client_id, provider, current, background,
  state, reference, sealed, seal_version, reference_sealed, reference_version, version, created_at, updated_at)
values ($1, $1, $2, $3, 'mdes', false, false, 'ACTIVE', 'r', $4, $5, $6, $7, 1, now(), now())`,
      values: [
        otherProvision,
        installation.scope,
        clientId,
        number.sealed,
        number.keyVersion,
        named.sealed,
        named.keyVersion,
      ],
    })
    for (const purpose of SEALING_PURPOSES) turned = await turnKey(installation.vault, purpose)
    for (const purpose of SEALING_PURPOSES) await beginReseal(store, purpose, BY)
    const deps = { ...installation.vault, ...turned, clock: Date.now, log: openLog('silent') }
    while (await workReseal(deps, PACE)) {}
  })
  afterAll(() => installation?.close())
  const otherProvision = randomUUID()
  const otherPlace = { provisionId: otherProvision, tokenId: otherProvision }

  it('leaves no row of any column under the former key, and every column had one', async () => {
    for (const name of SEALED_NAMES) {
      const { table, version, sealed } = SEALED_COLUMNS[name]
      const { rows } = await installation.vault.store.query({
        text: `select distinct ${version} as version from tokenmill.${table} where ${sealed} is not null`,
      })
      expect(rows, name).toEqual([{ version: 2 }])
    }
  })

  it('keeps what was sealed', async () => {
    const { store } = installation.vault
    const { ring, halves } = turned
    expect(await openAll(store, ring)).toEqual({ 2: 1 })
    const found = await endpoints.findSecrets(store, endpointId)
    const opened = found.map(one => ring.openWebhookSecret(one.sealed, one.keyVersion, endpointId).reveal())
    expect(opened).toEqual([secrets[1].reveal(), secrets[0].reveal()])
    const sealed = await contracts.find(store, contract.contractId)
    const { key, formerKey } = sealed ? contracts.openContract(ring, sealed) : {}
    expect([key?.reveal(), formerKey?.reveal()]).toEqual([nextContractKey.reveal(), contract.key.reveal()])
    expect((await authentications.find(store, ring, record.authenticationId))?.secrets.reveal()).toEqual({
      cavv: 'AAAA',
    })
    const total = await totalKeys.find(store, 'shop')
    expect(total?.key && ring.openTotalKey(total.key.sealed, total.key.keyVersion, 'shop').reveal()).toEqual(
      totalKey.reveal(),
    )
    const pending = await storedSchemes.find(store, provisionId)
    const card = pending && openSealedCard(pending, ring)
    expect(card).toMatchObject({ expiryYear: 2031, cardHolderName: 'ZOË' })
    expect(card?.pan.reveal()).toBe(testPan(1))
    const live = await storedSchemes.find(store, otherProvision)
    expect(live && isReferenceProved(live, ring)).toBe(true)
    expect(ring.openNetworkToken(live?.sealed ?? Buffer.alloc(0), 2, otherPlace).reveal()).toBe(NUMBER)
    const signing = await openInstallationKey(store, halves)
    expect(signing.kid).toBe((await signingKeys.findPublic(store))[0]?.kid)
  })

  it('names no private half as one that does not open where the store or a token is away', async () => {
    const { vault } = installation
    const name = 'signing_key.wrapped_private'
    const [half] = await signingKeys.listHalves(vault.store)
    if (!half) throw new Error('there is a signing key')
    const row = {
      key: half.kid,
      sealed: half.wrappedPrivate,
      version: half.privateVersion,
      facts: {},
    }
    const found = { rows: [row], version: turned.version }
    for (const code of ['store_away', 'store_busy', 'kek_away'] as const) {
      const fail = () => Promise.reject(new Fault(code))
      for (const halves of [
        { ...turned.halves, seal: fail },
        { ...turned.halves, open: fail },
      ])
        await expect(sealSetAnew(name, found, { ...turned, halves })).rejects.toMatchObject({ code })
    }
    const seal = () => Promise.reject(new Fault('key_unavailable'))
    const keyless = { ...turned, halves: { ...turned.halves, seal } }
    await expect(sealSetAnew(name, found, keyless)).rejects.toThrow(NotReady)
    const spoilt = { rows: [{ ...row, sealed: Buffer.alloc(80) }], version: turned.version }
    expect(await sealSetAnew(name, spoilt, turned)).toMatchObject({ failed: 1, failedRow: `signing_key ${half.kid}` })
  })
})
