// Builds the authentication request (AReq, EMV 3-D Secure) of a lookup. It holds the card number, so it is passed on as
// a Secret. table.ts decides which members it has, members.ts what they contain.
import { assert } from '../../errors.ts'
import { Secret } from '../../secret.ts'
import { MESSAGE_VERSION } from '../messages.ts'
import { situationOf } from './admission.ts'
import { isAscii, markForeign, toAscii } from './ascii.ts'
import { type Asking, membersOf } from './members.ts'
import { faultsOf, inclusionOf, MEMBERS, type Member, type Version } from './table.ts'

export type AReq = Secret<Record<string, unknown> & { threeDSServerTransID: string; messageVersion: string }>

export const WINDOW_SIZE = '05'

export function areqOf(asking: Asking, version: Version = MESSAGE_VERSION): AReq {
  const { request, network } = asking
  const situation = situationOf(request, network, version)
  const members = membersOf(asking, situation)
  const areq = Object.fromEntries(
    MEMBERS.flatMap(member => {
      const inclusion = inclusionOf(member, situation)
      if (inclusion === 'absent') return []
      const value = written((members as Given)[member], { member, version, isRequired: inclusion === 'required' })
      return value === undefined ? [] : [[member, value]]
    }),
  )
  const { missing, surplus } = faultsOf(areq, situation)
  assert(missing.length === 0 && surplus.length === 0, 'no admitted lookup makes an AReq that the table refuses')
  return new Secret(areq as ReturnType<AReq['reveal']>)
}

type Given = Partial<Record<Member, unknown>>

interface Place {
  member: Member
  version: Version
  isRequired: boolean
}

/**
 * A text in the form that this protocol version allows, cut to the standard's length. Undefined if the text has no such
 * form and the member isn't required.
 */
function written(value: unknown, { member, version, isRequired }: Place): unknown {
  if (typeof value !== 'string') return value
  const isUnicode = version === '2.3.1'
  const text = (isUnicode ? value : toAscii(value)).slice(0, LENGTHS[member]).trim()
  const least = member === 'cardholderName' ? NAME_LENGTH_MIN : 1
  if (text.length >= least && (isUnicode || isAscii(text))) return text
  return isRequired ? markForeign(text) || '?' : undefined
}

const NAME_LENGTH_MIN = 2
/** The longest length of texts that may grow when they are transliterated. */
const LENGTHS: { readonly [M in Member]?: number } = {
  cardholderName: 45,
  billAddrLine1: 50,
  billAddrLine2: 50,
  billAddrLine3: 50,
  billAddrCity: 50,
  billAddrPostCode: 16,
  shipAddrLine1: 50,
  shipAddrLine2: 50,
  shipAddrLine3: 50,
  shipAddrCity: 50,
  shipAddrPostCode: 16,
  merchantName: 40,
  acquirerMerchantID: 35,
  threeDSRequestorID: 35,
  threeDSRequestorName: 40,
  browserAcceptHeader: 2048,
  browserUserAgent: 2048,
}
