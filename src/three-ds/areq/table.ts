// Which members an AReq has (EMV 3-D Secure 2.1, 2.2, 2.3.1): one cell per member, protocol version, device channel and
// message category. AReqs are built and lookups are checked with this table. A member that isn't here is never sent.
// members.ts makes the contents.
import type { VERSIONS } from '../messages.ts'
import { type Category, isMastercards, type Network } from '../outcome.ts'

export type Version = (typeof VERSIONS)[number]
/** An app (this service takes no lookups from apps), a browser, or a request of the merchant without a cardholder. */
type Channel = 'APP' | 'BRW' | '3RI'
/** `conditional`: CONDITIONS decides which of the other three applies. */
type Cell = 'required' | 'conditional' | 'optional' | 'absent'
type Row = Record<Channel, Record<Category, Cell>>

const both = <P extends Cell, N extends Cell>(payment: P, other: N) => ({ '01': payment, '02': other }) as const
const none = both('absent', 'absent')
const must = both('required', 'required')
const may = both('optional', 'optional')
const depends = both('conditional', 'conditional')

const always = { APP: must, BRW: must, '3RI': must } as const
const anywhere = { APP: may, BRW: may, '3RI': may } as const
const onCondition = { APP: depends, BRW: depends, '3RI': depends } as const
const nowhere = { APP: none, BRW: none, '3RI': none } as const
const sdk = { APP: must, BRW: none, '3RI': none } as const
const browser = { APP: none, BRW: must, '3RI': none } as const
const browserMay = { APP: none, BRW: may, '3RI': none } as const
const scripted = { APP: none, BRW: depends, '3RI': none } as const
const withCardholder = { APP: must, BRW: must, '3RI': none } as const
const withCardholderMay = { APP: may, BRW: may, '3RI': none } as const
const merchantAsks = { APP: none, BRW: none, '3RI': must } as const
const inPayments = both('required', 'optional')
const merchant = { APP: inPayments, BRW: inPayments, '3RI': inPayments } as const
const inPurchases = both('required', 'conditional')
const purchase = { APP: inPurchases, BRW: inPurchases, '3RI': inPurchases } as const
const onlyPayments = both('optional', 'absent')
const payments = { APP: onlyPayments, BRW: onlyPayments, '3RI': onlyPayments } as const
const prior = { APP: may, BRW: may, '3RI': both('conditional', 'optional') } as const

const EDITION_2_2 = {
  messageType: always,
  messageVersion: always,
  messageCategory: always,
  deviceChannel: always,
  threeDSServerTransID: always,
  threeDSServerURL: always,
  threeDSServerRefNumber: always,
  threeDSServerOperatorID: anywhere,
  threeDSRequestorID: always,
  threeDSRequestorName: always,
  threeDSRequestorURL: always,
  threeDSRequestorAuthenticationInd: withCardholder,
  threeDSRequestorAuthenticationInfo: withCardholderMay,
  threeDSRequestorChallengeInd: withCardholderMay,
  threeDSRequestorDecReqInd: anywhere,
  threeDSRequestorPriorAuthenticationInfo: prior,
  threeRIInd: merchantAsks,
  acctNumber: always,
  cardExpiryDate: anywhere,
  // Visa requires the acquirer's members also without a payment.
  acquirerBIN: merchant,
  acquirerMerchantID: merchant,
  mcc: merchant,
  merchantCountryCode: merchant,
  merchantName: merchant,
  transType: payments,
  purchaseAmount: purchase,
  purchaseCurrency: purchase,
  purchaseExponent: purchase,
  purchaseDate: purchase,
  purchaseInstalData: onCondition,
  recurringExpiry: onCondition,
  recurringFrequency: onCondition,
  cardholderName: anywhere,
  email: anywhere,
  mobilePhone: anywhere,
  workPhone: anywhere,
  addrMatch: withCardholderMay,
  billAddrLine1: anywhere,
  billAddrLine2: anywhere,
  billAddrLine3: anywhere,
  billAddrCity: anywhere,
  billAddrState: onCondition,
  billAddrPostCode: anywhere,
  billAddrCountry: anywhere,
  shipAddrLine1: anywhere,
  shipAddrLine2: anywhere,
  shipAddrLine3: anywhere,
  shipAddrCity: anywhere,
  shipAddrState: onCondition,
  shipAddrPostCode: anywhere,
  shipAddrCountry: anywhere,
  acctInfo: anywhere,
  merchantRiskIndicator: anywhere,
  notificationURL: browser,
  threeDSCompInd: browser,
  browserAcceptHeader: browser,
  browserIP: browserMay,
  browserLanguage: browser,
  browserUserAgent: browser,
  browserJavascriptEnabled: browser,
  browserJavaEnabled: scripted,
  browserColorDepth: scripted,
  browserScreenHeight: scripted,
  browserScreenWidth: scripted,
  browserTZ: scripted,
  deviceRenderOptions: sdk,
  sdkAppID: sdk,
  sdkEncData: sdk,
  sdkEphemPubKey: sdk,
  sdkMaxTimeout: sdk,
  sdkReferenceNumber: sdk,
  sdkTransID: sdk,
} as const satisfies Record<string, Row>

export type Member = keyof typeof EDITION_2_2
export const MEMBERS = Object.keys(EDITION_2_2) as Member[]

export const TABLE = {
  // Version 2.1.0 has no member for scripts or decoupled authentication; the members that go with scripts are always
  // required.
  '2.1.0': {
    ...EDITION_2_2,
    threeDSRequestorDecReqInd: nowhere,
    browserJavascriptEnabled: nowhere,
    browserJavaEnabled: browser,
    browserColorDepth: browser,
    browserScreenHeight: browser,
    browserScreenWidth: browser,
    browserTZ: browser,
  },
  '2.2.0': EDITION_2_2,
  '2.3.1': EDITION_2_2,
} as const satisfies Record<Version, Record<Member, Row>>

/** The names of all members with a cell `conditional`. */
type Conditional = {
  [M in Member]: 'conditional' extends (typeof TABLE)[Version][M][Channel][Category] ? M : never
}[Member]

/** The facts of a request that decide which members it must have. */
export interface Situation {
  version: Version
  channel: Channel
  category: Category
  /** threeDSRequestorAuthenticationInd; undefined for 3RI. */
  authenticationInd?: string | undefined
  threeRIInd?: string | undefined
  hasScripts: boolean
  hasShippingCountry: boolean
  hasBillingCountry: boolean
  /** Undefined while the card isn't known. */
  network?: Network | undefined
}

const SERIES = new Set(['02', '03'])
const THREE_RI_SERIES = new Set(['01', '02'])
const THREE_RI_PURCHASES = new Set(['01', '02', '06', '07', '08', '09', '11'])
const isSeries = ({ authenticationInd = '', threeRIInd = '' }: Situation) =>
  SERIES.has(authenticationInd) || THREE_RI_SERIES.has(threeRIInd)
const isPurchase = ({ authenticationInd = '', threeRIInd = '' }: Situation) =>
  SERIES.has(authenticationInd) || THREE_RI_PURCHASES.has(threeRIInd)
const isInstalment = ({ authenticationInd, threeRIInd }: Situation) => authenticationInd === '03' || threeRIInd === '02'

type Condition = (situation: Situation) => Exclude<Cell, 'conditional'>
const when =
  (holds: (situation: Situation) => boolean): Condition =>
  situation =>
    holds(situation) ? 'required' : 'absent'
const onlyWith =
  (holds: (situation: Situation) => boolean): Condition =>
  situation =>
    holds(situation) ? 'optional' : 'absent'
const ofPurchase = when(isPurchase)
const withScripts = when(({ hasScripts }) => hasScripts)

const CONDITIONS = {
  purchaseAmount: ofPurchase,
  purchaseCurrency: ofPurchase,
  purchaseExponent: ofPurchase,
  purchaseDate: ofPurchase,
  purchaseInstalData: when(isInstalment),
  recurringExpiry: when(isSeries),
  recurringFrequency: when(isSeries),
  // A subdivision is sent only with its country.
  billAddrState: onlyWith(({ hasBillingCountry }) => hasBillingCountry),
  shipAddrState: onlyWith(({ hasShippingCountry }) => hasShippingCountry),
  browserJavaEnabled: withScripts,
  browserColorDepth: withScripts,
  browserScreenHeight: withScripts,
  browserScreenWidth: withScripts,
  browserTZ: withScripts,
  // Mastercard refuses a 3RI payment that names no earlier authentication (error 201).
  threeDSRequestorPriorAuthenticationInfo: ({ network }) =>
    network !== undefined && isMastercards(network) ? 'required' : 'optional',
} as const satisfies Record<Conditional, Condition>

/** Whether the request must have this member, may have it, or must not have it. */
export function inclusionOf(member: Member, situation: Situation): Exclude<Cell, 'conditional'> {
  const cell: Cell = TABLE[situation.version][member][situation.channel][situation.category]
  return cell === 'conditional' ? CONDITIONS[member as Conditional](situation) : cell
}

/**
 * Returns the names of members for which a directory server would refuse the AReq: required members that are missing,
 * and members that must be absent.
 */
export function faultsOf(areq: Readonly<Record<string, unknown>>, situation: Situation) {
  const missing = MEMBERS.filter(member => inclusionOf(member, situation) === 'required' && areq[member] === undefined)
  const surplus = Object.keys(areq).filter(name => !isMember(name) || inclusionOf(name, situation) === 'absent')
  return { missing, surplus }
}

function isMember(name: string): name is Member {
  return Object.hasOwn(EDITION_2_2, name)
}
