// An owner's ids as columns of `source_reference`, and as a list by which references are looked up. It runs nothing.
import type { OwnerId } from '../../token/on-file.ts'
import { listOf, texts } from '../columns.ts'

/** The columns of an owner, for statements that call the table `r`. */
export const OWNER_COLUMNS = `
  r.token_scope as "tokenScope",
  r.provider,
  r.provider_account as "providerAccount",
  r.customer_id as "customerId",
  r.card_id as "cardId"`

const PARTS = [
  { column: 'token_scope', type: 'uuid', of: (owner: OwnerId) => owner.tokenScope },
  { column: 'provider', type: 'text', of: (owner: OwnerId) => owner.provider },
  { column: 'provider_account', type: 'text', of: (owner: OwnerId) => owner.providerAccount },
  { column: 'customer_id', type: 'text', of: (owner: OwnerId) => owner.customerId },
  { column: 'card_id', type: 'text', of: (owner: OwnerId) => owner.cardId },
] as const

export interface WantedOwners {
  /** Which parts all owners have in common. It is part of a prepared statement's name. */
  shape: string
  /** The owners as a table `wanted`; parameters 1 to 5. */
  from: string
  /** The condition under which a row of `source_reference` is that of an owner of `wanted`. */
  isWanted: string
  values: string[]
}

/** Owners for a look-up; at least one. A part that all of them share is sent once. */
export function wantedOwners(owners: readonly OwnerId[]): WantedOwners {
  const values: string[] = []
  const lists: string[] = []
  const names: string[] = []
  const conditions: string[] = []
  let shape = ''
  for (const [index, { column, type, of }] of PARTS.entries()) {
    const parts = owners.map(of)
    const [first = ''] = parts
    // The card's id is always a list, so that there is a row for each owner.
    const isOnce = column !== 'card_id' && parts.every(part => part === first)
    values.push(isOnce ? first : texts(parts))
    shape += isOnce ? '1' : 'n'
    conditions.push(`${column} = ${isOnce ? `$${index + 1}::${type}` : `wanted.${column}`}`)
    if (isOnce) continue
    lists.push(`unnest(${listOf(index + 1, type)})`)
    names.push(column)
  }
  const from = `rows from (${lists.join(', ')}) as wanted(${names.join(', ')})`
  return { shape, from, isWanted: conditions.map(one => `r.${one}`).join(' and '), values }
}
