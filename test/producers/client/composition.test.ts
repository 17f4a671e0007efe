// What the client library knows of the kinds beside the catalogue: two tables that must say the same.
import { expect, test } from 'vitest'
import { ASKS } from '../../../producers/client/composition.ts'
import { KINDS } from '../../../src/job/composition.ts'

test('the client library knows every kind that isn’t a system client’s, and what a sender must know of it', () => {
  const known = [...ASKS].map(([kind, { hasBlock = false, sequenced = false }]) => [kind, { hasBlock, sequenced }])
  const kinds = Object.entries(KINDS)
    .filter(([, { systemOnly }]) => !systemOnly)
    .map(([kind, { hasBlock, sequenced }]) => [kind, { hasBlock, sequenced }])
  expect(Object.fromEntries(known)).toEqual(Object.fromEntries(kinds))
})
