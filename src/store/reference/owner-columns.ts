// An owner's ids as columns of `source_reference`, and as a list by which references are looked up. It runs nothing.
import type { OwnerId } from '../../token/on-file.ts'
import { listOf, plains, texts } from '../columns.ts'

export interface OwnerRow {
  token_scope: string
  provider: string
  provider_account: string
  customer_id: string
  card_id: string
}

export function ownerIn(row: OwnerRow): OwnerId {
  return {
    tokenScope: row.token_scope,
    provider: row.provider,
    providerAccount: row.provider_account,
    customerId: row.customer_id,
    cardId: row.card_id,
  }
}

/** The owners of `ownersList` as a table `wanted`; parameters 1 to 5. */
export const WANTED_OWNERS = `rows from (unnest(${listOf(1, 'uuid')}), unnest(${listOf(2, 'text')}), unnest(${listOf(3, 'text')}),
  unnest(${listOf(4, 'text')}), unnest(${listOf(5, 'text')})) as wanted(scope, source, account, customer, card)`

/** The condition under which a row of `source_reference` is that of an owner of `wanted`. */
export const IS_WANTED = `token_scope = wanted.scope and provider = wanted.source and provider_account = wanted.account
  and customer_id = wanted.customer and card_id = wanted.card`

export function ownersList(owners: readonly OwnerId[]): string[] {
  return [
    plains(owners.map(({ tokenScope }) => tokenScope)),
    texts(owners.map(({ provider }) => provider)),
    texts(owners.map(({ providerAccount }) => providerAccount)),
    texts(owners.map(({ customerId }) => customerId)),
    texts(owners.map(({ cardId }) => cardId)),
  ]
}
