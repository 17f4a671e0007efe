// Counts the owners of a file's cards: customers, owners that several rows name, cards that several owners have, and
// other members of `on_file`. An owner is identified as in the vault, but without the token scope.
import { z } from 'zod'
import { isUsualLinkId, ownerKey } from '../../src/token/on-file.ts'
import { openTally } from './tally.ts'

/** The members of `on_file` that are counted. */
export const OwnedBy = z.object({
  provider: z.string(),
  provider_account: z.string().default(''),
  customer_id: z.string().default(''),
  card_id: z.string(),
  network_transaction_ids: z.array(z.string()).default([]),
  transaction_link_id: z.string().optional(),
})
export type OwnedBy = z.infer<typeof OwnedBy>

export interface OwnerFindings {
  /** Rows that name an owner. */
  rows: number
  /** Different owners, and how many of them stand in more than one row. */
  owners: { distinct: number; repeated: number }
  /** How many numbers there are beyond one for each owner, for example because one id of a card has two numbers. */
  numbersBeyondOne: number
  /** How many owners there are beyond one for each card that has an owner. */
  sharing: number
  /** How many customers there are, how many of them have one row, and the most rows that one has. */
  customers: { distinct: number; withOneRow: number; rowsMost: number }
  networkIds: { with: number; without: number }
  linkIds: { with: number; without: number; unusual: number }
}

export interface OwnerInspection {
  see(onFile: OwnedBy, pan: string): void
  /** Undefined where nothing was seen. */
  end(): OwnerFindings | undefined
  close(): void
}

export function openOwnerInspection(): OwnerInspection {
  const tallies = { owners: openTally(), pairs: openTally(), cards: openTally(), customers: openTally() }
  const seen = { rows: 0, networkIds: 0, linkIds: 0, unusual: 0 }
  return {
    see(onFile, pan) {
      const { provider, provider_account: providerAccount, customer_id: customerId, card_id: cardId } = onFile
      const owner = { tokenScope: '', provider, providerAccount, customerId, cardId }
      const key = ownerKey(owner)
      seen.rows += 1
      tallies.owners.add(key)
      tallies.pairs.add(`${pan} ${key}`)
      tallies.cards.add(pan)
      if (customerId !== '') tallies.customers.add(ownerKey({ ...owner, cardId: '' }))
      if (onFile.network_transaction_ids.length > 0) seen.networkIds += 1
      const { transaction_link_id: linkId } = onFile
      if (linkId === undefined) return
      seen.linkIds += 1
      if (!isUsualLinkId(linkId)) seen.unusual += 1
    },
    end() {
      if (seen.rows === 0) return undefined
      const owners = tallies.owners.end()
      const pairs = tallies.pairs.end()
      const customers = tallies.customers.end()
      const { rows, networkIds, linkIds, unusual } = seen
      return {
        rows,
        owners: { distinct: owners.distinct, repeated: owners.repeated },
        numbersBeyondOne: pairs.distinct - owners.distinct,
        sharing: pairs.distinct - tallies.cards.end().distinct,
        customers: {
          distinct: customers.distinct,
          withOneRow: customers.distinct - customers.repeated,
          rowsMost: customers.most,
        },
        networkIds: { with: networkIds, without: rows - networkIds },
        linkIds: { with: linkIds, without: rows - linkIds, unusual },
      }
    },
    close() {
      for (const tally of Object.values(tallies)) tally.close()
    },
  }
}
