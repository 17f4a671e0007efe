// Makes `on_file` of a record, as a profile says, written straight as JSON as the whole record is. Ids, names and addresses
// stay as they are given: what a profile doesn't declare isn't repaired.
import { isRefusal, type Refusal, refuse } from '../../../../src/errors.ts'
import { isUsualLinkId } from '../../../../src/token/on-file.ts'
import { digitsOf, PAN_LENGTH, withoutPadding } from '../../../../src/token/pan.ts'
import type { OnFileTrait } from '../../file-outcome.ts'
import { joinedName, type Repair, referenceOf, type Use } from '../cells.ts'
import type { OnFileColumns } from '../on-file-schema.ts'
import { LIST_SEPARATOR } from '../records.ts'
import { addressPart } from './address.ts'
import { agreementParts } from './agreement.ts'
import { at, idMember, idPart, joined, type Part, textMember, textPart, textValue } from './part.ts'

export interface OnFileText {
  /** A JSON object. */
  json: string
  traits: readonly OnFileTrait[]
  /** Those of its texts that could be a card number. */
  cardLike: readonly string[]
}

/** Undefined for a row without an owner: one that has no id of its card. */
export type MakeOnFile = (
  texts: readonly string[],
  repairs: Set<Repair>,
  pan: string,
) => OnFileText | Refusal | undefined

type Clean = (text: string, repairs?: Set<Repair>) => string

const ID_MAX = 128
const NAME_MAX = 256
const NETWORK_ID_MAX = 64
const NETWORK_IDS_MAX = 50

export function onFileOf(columns: OnFileColumns, use: Use, clean: Clean): MakeOnFile {
  const cardId = referenceOf(columns.card_id, at('card_id'), use)
  const networkIds = networkIdsPart(columns.network_transaction_ids, use, clean)
  const linkAt = columns.transaction_link_id && use(columns.transaction_link_id.from, at('transaction_link_id.from'))
  const linkId = (texts: readonly string[]) => (linkAt === undefined ? '' : (texts[linkAt] ?? ''))
  const parts = [
    accountPart(columns.provider_account, use),
    customerPart(columns.customer_id, use),
    namePart(columns.cardholder_name, use),
    idPart('transaction_link_id', NETWORK_ID_MAX, ({ texts }) => linkId(texts)),
    ...agreementParts(columns, use),
    addressPart(columns.billing_address, use),
  ]
  const start = `{"provider":"${columns.provider}",`
  return (texts, repairs, pan) => {
    const id = cardId(texts)
    if (id === '') return undefined
    if (id === undefined) return refuse('field_required', at('card_id'))
    const row = { texts, repairs, number: ownNumber(pan), cardLike: [] }
    const network = networkIds(row)
    if (isRefusal(network)) return network
    const named = idMember('card_id', ID_MAX, id, row)
    if (isRefusal(named)) return named
    const members = joined(parts, row)
    if (isRefusal(members)) return members
    const json = `${start}${network === '' ? '' : `${network},`}${named}${members === '' ? '' : `,${members}`}}`
    return { json, traits: traitsOf(network !== '', linkId(texts)), cardLike: row.cardLike }
  }
}

/** The digits of a number that can be one. */
function ownNumber(pan: string): string {
  const digits = withoutPadding(digitsOf(pan))
  return digits.length >= PAN_LENGTH.least && digits.length <= PAN_LENGTH.most ? digits : ''
}

function accountPart(column: OnFileColumns['provider_account'], use: Use): Part {
  if (column === undefined) return () => ''
  if ('constant' in column) return textPart('provider_account', ID_MAX, () => column.constant)
  const place = use(column.from, at('provider_account.from'))
  return textPart('provider_account', ID_MAX, ({ texts }) => texts[place] ?? '')
}

function customerPart(template: string | undefined, use: Use): Part {
  const customerId = referenceOf(template, at('customer_id'), use)
  return row => {
    const id = customerId(row.texts)
    return id === undefined ? refuse('field_required', at('customer_id')) : textMember('customer_id', ID_MAX, id, row)
  }
}

function namePart(column: OnFileColumns['cardholder_name'], use: Use): Part {
  const places = (column?.from ?? []).map((field, index) => use(field, at(`cardholder_name.from.${index}`)))
  return textPart('cardholder_name', NAME_MAX, ({ texts }) => joinedName(texts, places))
}

function networkIdsPart(column: OnFileColumns['network_transaction_ids'], use: Use, clean: Clean): Part {
  if (column === undefined) return () => ''
  const { from, separator } = column
  const place = use(from, at('network_transaction_ids.from'))
  const name = 'network_transaction_ids'
  return row => {
    const text = row.texts[place] ?? ''
    if (text === '') return ''
    const texts = text.split(LIST_SEPARATOR).flatMap(one => (separator === undefined ? one : one.split(separator)))
    const ids = texts.length === 1 ? texts : texts.map(one => clean(one, row.repairs))
    const given = ids.filter(id => id !== '')
    if (given.length > NETWORK_IDS_MAX) return refuse('field_length', at(name))
    const values: string[] = []
    for (const id of given) {
      const value = textValue(id, NETWORK_ID_MAX, row)
      if (typeof value !== 'string') return refuse(value.reason, at(name))
      values.push(value)
    }
    return values.length === 0 ? '' : `"${name}":[${values.join(',')}]`
  }
}

const TRAITS: Record<'none' | 'usual' | 'unusual', readonly OnFileTrait[]> = {
  none: [],
  usual: ['tlid'],
  unusual: ['tlid', 'tlid_unusual'],
}
const WITH_NTI: typeof TRAITS = {
  none: ['nti'],
  usual: ['nti', 'tlid'],
  unusual: ['nti', 'tlid', 'tlid_unusual'],
}

function traitsOf(hasNetworkIds: boolean, linkId: string): readonly OnFileTrait[] {
  const link = linkId === '' ? 'none' : isUsualLinkId(linkId) ? 'usual' : 'unusual'
  return hasNetworkIds ? WITH_NTI[link] : TRAITS[link]
}
