// What is sealed in a provisioning says for which token it is, and to which provider a card goes: the owner of the database
// can't have it sent, or shown, elsewhere by a change of the row.
import { randomUUID } from 'node:crypto'
import { beforeAll, expect, it } from 'vitest'
import { Secret } from '../../../src/secret.ts'
import type { StoredScheme } from '../../../src/store/provider/scheme-row.ts'
import { keksOf } from '../../../src/vault/kek/provider.ts'
import { type KeyRing, type LiveRing, makeDataKeys, openKeyRing, PURPOSES } from '../../../src/vault/ring/key-ring.ts'
import { openSealedCard, pendingRow } from '../../../workers/provider/pending-card.ts'
import { testPan } from '../../support/test-pan.ts'
import { openKek } from '../../vault/bundle.ts'

let ring: KeyRing
beforeAll(async () => {
  const kek = await openKek()
  ring = await openKeyRing(keksOf(kek), await makeDataKeys(kek, PURPOSES))
})

it('a card goes to no other provider and for no other token, scope or row than it was sealed for', () => {
  const token = { tokenId: randomUUID(), tokenScope: randomUUID() }
  const card = { pan: new Secret(testPan(1)), expiryMonth: 12, expiryYear: 2031, cardHolderName: 'ZOË' }
  const about = { provisionId: randomUUID(), clientId: 'c', provider: 'psp', background: true }
  const row = pendingRow(token, card, about, { ring: ring as LiveRing, clock: Date.now }) as unknown as StoredScheme
  expect(openSealedCard(row, ring)?.pan.reveal()).toBe(testPan(1))
  const changes: Partial<StoredScheme>[] = [
    { provider: 'other' },
    { tokenId: randomUUID() },
    { tokenScope: randomUUID() },
    { provisionId: randomUUID() },
  ]
  for (const change of changes)
    expect(() => openSealedCard({ ...row, ...change }, ring), Object.keys(change)[0]).toThrow(
      expect.objectContaining({ code: 'defect' }),
    )
})

it('a network token’s number is shown with no other token than it was sealed for', () => {
  const place = { provisionId: randomUUID(), tokenId: randomUUID() }
  const { sealed, keyVersion } = ring.sealNetworkToken(new Secret(testPan(2)), place)
  expect(ring.openNetworkToken(sealed, keyVersion, place).reveal()).toBe(testPan(2))
  for (const other of [
    { ...place, tokenId: randomUUID() },
    { ...place, provisionId: randomUUID() },
  ])
    expect(() => ring.openNetworkToken(sealed, keyVersion, other)).toThrow(expect.objectContaining({ code: 'defect' }))
})
