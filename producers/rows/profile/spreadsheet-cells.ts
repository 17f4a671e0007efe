// Finds the fields of a row that a spreadsheet has changed. Numbers, dates, amounts and words have declared forms and are
// judged where they are read; ids and free texts have none, so they are judged here.

import { formulaForm, type SpreadsheetForm, spreadsheetForm } from '../spreadsheet-form.ts'
import { fieldsOf } from './profile-rules.ts'
import type { Profile } from './profile-schema.ts'
import { type FieldUse, LIST_SEPARATOR } from './records.ts'

const OWNER = /^on_file\.(?:card_id|customer_id|provider_account)$/
const ID =
  /^(?:columns\.reference|on_file\.(?:card_id|customer_id|provider_account|network_transaction_ids|transaction_link_id|is_default|billing_address\.postal_code))$/
const WORDS = /^(?:columns\.cardholder_name|on_file\.(?:cardholder_name|billing_address\.(?:line1|line2|city|state)))$/

/** Whether this member is a part of the owner's id. */
export const isOfOwner = (member: string) => OWNER.test(member)

/** The fields that make ids, once each. */
export function idFieldsOf(profile: Profile): string[] {
  const number = profile.columns.card_number.from
  const ids = fieldsOf(profile).filter(({ path, field }) => ID.test(memberOf(path)) && field !== number)
  return [...new Set(ids.map(({ field }) => field))]
}

/** Returns the first member whose text has a form that the profile doesn't allow. `uses`: the fields of the texts. */
export function changedBySpreadsheet(
  profile: Profile,
  uses: readonly FieldUse[],
  clean: (text: string) => string,
): (texts: readonly string[]) => string | undefined {
  const { as_is: asIs = {}, columns, on_file: onFile } = profile
  const separator = onFile?.network_transaction_ids?.separator
  const comparesDefault = onFile?.is_default !== undefined && 'equals' in onFile.is_default
  const judged = uses.flatMap(({ field, path }, index) => {
    const member = memberOf(path)
    const isId = ID.test(member) && (member !== 'on_file.is_default' || comparesDefault)
    if ((!isId && !WORDS.test(member)) || field === columns.card_number.from) return []
    const allowed: ReadonlySet<SpreadsheetForm> = new Set(Object.hasOwn(asIs, field) ? asIs[field] : [])
    const formOf = isId ? spreadsheetForm : formulaForm
    const isChanged = (text: string) => {
      const form = formOf(text)
      return form !== undefined && !allowed.has(form)
    }
    return [{ index, member, isList: member === 'on_file.network_transaction_ids', isChanged }]
  })
  return texts =>
    judged.find(({ index, isList, isChanged }) => {
      const text = texts[index] ?? ''
      return text !== '' && (isList ? idsIn(text, separator).some(one => isChanged(clean(one))) : isChanged(text))
    })?.member
}

function idsIn(text: string, separator: string | undefined): readonly string[] {
  const texts = text.includes(LIST_SEPARATOR) ? text.split(LIST_SEPARATOR) : [text]
  return separator === undefined ? texts : texts.flatMap(one => one.split(separator))
}

/** `on_file.card_id` for `on_file.card_id.from`, `columns.cardholder_name` for `columns.cardholder_name.from.0`. */
function memberOf(path: string): string {
  return path.replace(/\.(?:from(?:\.\d+)?|equals)$/, '')
}
