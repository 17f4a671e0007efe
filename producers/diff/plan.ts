// The lines of the two files that a diff writes: the plan, which `migrate --only` takes, and the releases of owners who are
// gone, which `migrate --record-kind reference` takes. Neither holds card data.
import type { OnOrphan } from '../../src/job/choices.ts'
import type { OwnerId } from '../../src/token/on-file.ts'
import { holdsPossiblePan } from '../../src/token/possible-pan.ts'
import type { Profile } from '../rows/profile/profile.ts'
import type { Row } from '../rows/rows.ts'
import type { Change } from './changes.ts'

export interface PlannedRow {
  row: Row
  change: Change
  /** Whether the plan may name the row by its reference. */
  isNamed: boolean
}

/** A line about a row of the file. `inputSha256`: of the file. */
export function planLine(
  { row, change, isNamed }: PlannedRow,
  inputSha256: string,
  profile: Profile | undefined,
): string {
  const { reference, owner, line, fileLine = line, item } = row
  const place = { line: fileLine, ...(item === undefined ? {} : { item }) }
  // A row without a reference is found by its place, so its line says of which file.
  if (reference === undefined || !isNamed) return JSON.stringify({ change, ...place, input_sha256: inputSha256 })
  // The ids of a rejected row weren't checked, so they aren't written into the plan.
  const isSound = row.rejected === undefined && change !== 'rejected'
  const owned = isSound && typeof owner === 'object' ? membersOf(owner, profile) : {}
  return JSON.stringify({ reference, ...owned, change, ...place })
}

/** The customer, and the account where a file can name several. */
function membersOf(
  { customerId, providerAccount }: Pick<OwnerId, 'customerId' | 'providerAccount'>,
  profile: Profile | undefined,
): { customer?: string; account?: string } {
  const account = profile?.on_file?.provider_account
  const isColumn = account !== undefined && 'from' in account && providerAccount !== ''
  return {
    ...(customerId === '' ? {} : { customer: customerId }),
    ...(isColumn ? { account: providerAccount } : {}),
  }
}

/** A line about an owner whom the file doesn't name any more. */
export function removedLine(owner: OwnerId, profile: Profile | undefined): string {
  return JSON.stringify({ reference: owner.cardId, ...membersOf(owner, profile), change: 'removed' })
}

export function releaseLine(
  { provider, providerAccount, customerId, cardId }: OwnerId,
  onOrphan: OnOrphan | undefined,
): string {
  return JSON.stringify({
    ...(holdsPossiblePan(cardId) ? {} : { reference: cardId }),
    provider,
    ...(providerAccount === '' ? {} : { provider_account: providerAccount }),
    ...(customerId === '' ? {} : { customer_id: customerId }),
    card_id: cardId,
    action: 'RELEASE',
    ...(onOrphan === undefined ? {} : { on_orphan: onOrphan }),
  })
}
