// A merchant's 3-D Secure contract: the merchant account of authentications, their directory server, and the key that
// signs the browser's JWTs. Operators create contracts.
import { z } from 'zod'
import { text, uuid } from '../job/envelope/text.ts'
import type { Secret } from '../secret.ts'
import { countryNumber } from '../token/country.ts'
import type { Caller } from './record.ts'

const address = () =>
  z
    .url({ protocol: /^https?$/ })
    .max(2048)
    .refine(url => !new URL(url).username && !new URL(url).hash, { params: { reason: 'field_format' } })

/** The terms that the operator enters. */
export const ContractTerms = z.strictObject({
  name: text(1, 100),
  entityId: uuid(),
  directoryUrl: address(),
  acquirerBin: z.string().regex(/^\d{1,11}$/),
  acquirerMerchantId: text(1, 35),
  mcc: z.string().regex(/^\d{4}$/),
  /** ISO 3166-1 alpha-2 or alpha-3. */
  merchantCountry: z.string().refine(code => countryNumber(code) !== undefined, { params: { reason: 'field_value' } }),
  merchantName: text(1, 40),
  requestorUrl: address(),
  /** The URL to which the browser brings the end of a challenge. */
  notificationUrl: address().refine(url => url.length <= 256, { params: { reason: 'field_length' } }),
  requestorId: text(1, 35),
  requestorName: text(1, 40),
  /** `iss` and `OrgUnitId` of JWTs, as the authentication network assigned them. */
  issuer: text(1, 64),
  orgUnitId: text(1, 64),
})
export type ContractTerms = z.infer<typeof ContractTerms>

export interface Contract extends ContractTerms {
  contractId: string
  /** The HS256 key: at least 32 bytes. */
  key: Secret<Buffer>
  /** The key before it, while it still verifies JWTs. It signs none. */
  formerKey?: Secret<Buffer> | undefined
  /** ms since the epoch. */
  createdAt: number
}

/** Whether the caller may use the contract: only clients that act for its entity may. */
export function mayUse(caller: Caller, contract: Pick<Contract, 'entityId'>): boolean {
  return caller.entities.includes(contract.entityId)
}
