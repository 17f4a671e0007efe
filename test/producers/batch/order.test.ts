// What the records of a chunk may change decides which chunks may be worked at the same time.
import { expect, it } from 'vitest'
import { touchedBy } from '../../../producers/batch/order.ts'
import { formatReuseToken } from '../../../src/token/token.ts'

const TOKEN = formatReuseToken('01234567-89ab-4def-8123-456789abcdef')
const OTHER = formatReuseToken('11234567-89ab-4def-8123-456789abcdef')
const owner = { provider: 'stripe', customer_id: 'cus_1', card_id: 'card_1' }

it('creates need no order, unless what happens to a token depends on its owners', () => {
  expect(touchedBy({ kind: 'token-create', policy: { on_conflict: 'keep', on_orphan: 'keep' } })).toBeUndefined()
  expect(touchedBy({ kind: 'token-create', policy: { relink: true } })?.([])).toBe('all')
  expect(touchedBy({ kind: 'token-create', policy: { on_orphan: 'delete' } })?.([])).toBe('all')
})

it('updates and actions name their tokens, however these are spelt, and the owners of the cards', () => {
  const touched = touchedBy({ kind: 'token-update' })
  expect(touched?.([{ id: TOKEN }, { id: TOKEN.toUpperCase(), expiry_month: 4 }])).toHaveProperty('size', 1)
  expect(touched?.([{ id: TOKEN }, { id: OTHER }])).toHaveProperty('size', 2)
  expect(touched?.([{ id: TOKEN, on_file: owner }])).toHaveProperty('size', 2)
  const [one, same] = [OTHER, TOKEN].map(id => touched?.([{ id, on_file: { ...owner, is_default: true } }]))
  expect([...(one as Set<string>)].filter(name => (same as Set<string>).has(name))).toHaveLength(1)
  expect(touchedBy({ kind: 'token-lifecycle' })?.([{ id: TOKEN, action: 'DELETE' }])).toHaveProperty('size', 1)
})

it('an update of a card, and a release, may change any token', () => {
  const touched = touchedBy({ kind: 'token-update' })
  expect(touched?.([{ id: TOKEN }, { id: OTHER, card: {} }])).toBe('all')
  expect(touched?.([{ id: TOKEN, encrypted_card: 'x' }])).toBe('all')
  expect(touchedBy({ kind: 'reference' })?.([owner])).toBe('all')
})
