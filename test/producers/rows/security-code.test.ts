// Which names of fields mean a card's security code.
import { describe, expect, it } from 'vitest'
import { COLUMN_NAMES } from '../../../producers/rows/columns.ts'
import { checkColumns } from '../../../producers/rows/layout.ts'
import { isSecurityCode } from '../../../producers/rows/security-code.ts'

const CODES = [
  ...['cvv', 'CVV2', 'cvc', 'CVC2', 'csc', 'CVN', 'cvn2', 'CV2', 'cvd', 'cid', 'CAV', 'CAV2', 'cve', 'c.v.v', 'ＣＶＶ'],
  ...[
    'verification_value',
    'card.verificationCode',
    'card_verification_number',
    'Card Verification',
    'verificationCode',
  ],
  ...['security-code', 'Security Code', 'securityCode', 'SECURITYCODE', 'card_security_value', 'security_number'],
  ...['card_code', 'cardCode', 'CVVCode', 'CARDCVV', 'CARDCID', 'CIDCode', 'cvNumber', 'cv_code', 'cv2avs'],
  ...['card.cid', 'card.cvc', 'cardCvv', 'card_cvn', 'payment[card][cvv]', 'a.b.CAV', 'CVV#2', ' cvv ', 'cvv.value'],
]
const OTHERS = [
  ...['id', 'customer', 'cardholder', 'decided', 'service', 'coincident', 'cave', 'cavalry', 'cv', 'cvs_store', 'cvr'],
  ...['verified', 'verification_status', 'verified_at', 'security', 'security_question', 'country_code', 'postal_code'],
  ...['card_number', 'card.id', 'card_type', 'card_country', 'code', 'zip_code', 'account', 'acid', 'placid', '#3'],
]

describe('a security code', () => {
  it.each(CODES)('is known by the name %s', name => expect(isSecurityCode(name)).toBe(true))
  it.each(OTHERS)('has not the name %s', name => expect(isSecurityCode(name)).toBe(false))
  it.each(COLUMN_NAMES)('has not the name of our column %s', name => expect(isSecurityCode(name)).toBe(false))

  it.each(CODES)('called %s is neither echoed nor mapped to a column', name => {
    expect(() => checkColumns({ recordKind: 'token-create', echo: [name] })).toThrow(/would put card data into/)
    const map = { [name]: 'cardholder_name' }
    expect(() => checkColumns({ recordKind: 'token-create', map })).toThrow(/--map .* security code/)
    expect(() => checkColumns({ recordKind: 'token-create', map: { [name]: null } })).not.toThrow()
  })
})
