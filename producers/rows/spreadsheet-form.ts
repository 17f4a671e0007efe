// Forms that a spreadsheet gives to a text that it takes for something else: two ids may get the same one, so none is an id
// unless the profile says so. It isn't decided here which columns hold ids.

export const SPREADSHEET_FORMS = ['boolean', 'date', 'error', 'exponent', 'formula', 'nothing', 'point_zero'] as const
export type SpreadsheetForm = (typeof SPREADSHEET_FORMS)[number]

/** The form of a text that should be an id; undefined for any other text. Without a sign or a point `1E5` is an id. */
export function spreadsheetForm(given: string): SpreadsheetForm | undefined {
  if (USUAL_ID.test(given)) return undefined
  const text = given.trim()
  const form = formulaForm(text)
  if (form !== undefined || text.length > LENGTH_MAX) return form
  if (/^[+-]?\d/.test(text)) return numberForm(text)
  const word = text.toLowerCase()
  if (NOTHING.has(word)) return 'nothing'
  if (BOOLEANS.has(word)) return 'boolean'
  return MONTH_FIRST.test(text) ? 'date' : undefined
}

/** The form of a text that may be any words, such as a name: there only a formula or its error is surely wrong. */
export function formulaForm(given: string): Extract<SpreadsheetForm, 'error' | 'formula'> | undefined {
  const text = given.trim()
  const first = text.charCodeAt(0)
  if (first === HASH) return ERROR.test(text) ? 'error' : undefined
  if (first === EQUALS || first === APOSTROPHE) return FORMULA.test(text) ? 'formula' : undefined
  return (first | SMALL) === SMALL_E && OFFICE_ERROR.test(text) ? 'error' : undefined
}

/** Digits alone, and `card_1A2b`: no form has an underscore behind letters. */
const USUAL_ID = /^(?:\d+|[A-Za-z]+_\w+)$/
const [HASH, EQUALS, APOSTROPHE] = [35, 61, 39]
const [SMALL, SMALL_E] = [32, 101]
/** No number, date or word is longer. */
const LENGTH_MAX = 40

function numberForm(text: string): SpreadsheetForm | undefined {
  if (EXPONENT.test(text)) return 'exponent'
  if (/^[+-]?\d+[.,]0+$/.test(text)) return 'point_zero'
  return DAY_MONTH_NAME.test(text) || isLocalDate(text) ? 'date' : undefined
}

/** `1.23E+15`, `1,2E15`, `1E+15`, `1E-05`. */
const EXPONENT = /^[+-]?(?:\d+[.,]\d+E[+-]?\d{1,3}|\d+E\+\d{1,3}|\dE-\d{2,3})$/i

/** `#N/A`, `#REF!`, `#BEZUG!`, `#NOM?`, `#¿NOMBRE?`, the words without a mark, and a column that was too narrow. */
const ERROR =
  /^#(?:[\p{L}¡¿][\p{L}¡¿_/0 ]*[!?]|\p{L}\/\p{L}|NV|NB|YOK|GETTING_DATA|HIÁNYZIK|NENÍ_K_DISPOZICI|BUSY!?|#+)$/iu
/** As LibreOffice writes errors: `Err:502`. */
const OFFICE_ERROR = /^Err:\d{3}$/i
/** `="123"`, `=123`, `=T("a")`, `=A1`, `=Sheet1!A1`, and the apostrophe before what would be a number or a formula. */
const FORMULA = /^(?:=\s*[+-]?(?:\(|"|\d|[\p{L}][\p{L}\d._]*\(|(?:[^!]+!)?\$?[A-Z]{1,3}\$?\d{1,7}$)|'\s*[\d=+@-])/iu

const TIME = '(?:,?[T ]\\d{1,2}:\\d{2}(?::\\d{2}(?:[.,]\\d+)?)?(?: ?[AP]M)?)?'
const DAY_FIRST = new RegExp(`^(\\d{1,2})([./-]) ?(\\d{1,2})\\2 ?(\\d{4}|\\d{2})${TIME}$`, 'i')
const YEAR_FIRST = new RegExp(`^\\d{4}(?:[./] ?|年)(\\d{1,2})(?:[./] ?|月)(\\d{1,2})[.日]?${TIME}$`, 'i')
/** A day alone in this form may be a part of a reference; a spreadsheet adds the midnight. */
const DAY_AND_TIME = /^\d{4}-\d{2}-\d{2} \d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?$/

function isLocalDate(text: string): boolean {
  if (DAY_AND_TIME.test(text)) return true
  const byYear = YEAR_FIRST.exec(text)
  if (byYear) return isDay(Number(byYear[1]), Number(byYear[2]))
  const [, one = '', separator, other = '', year = ''] = DAY_FIRST.exec(text) ?? []
  // Bank sort codes are written 12-03-04.
  if (year === '' || (separator === '-' && year.length === 2)) return false
  return isDay(Number(one), Number(other)) || isDay(Number(other), Number(one))
}

const isDay = (month: number, day: number) => month >= 1 && month <= 12 && day >= 1 && day <= 31

/** The short names as spreadsheets write them, so that an id in capitals such as DEC-12 is none. */
const CAPITALISED =
  'Jan|Feb|Mar|Mär|Mrz|Apr|May|Mai|Maj|Jun|Jul|Aug|Sep|Sept|Oct|Okt|Nov|Dec|Dez|Des|Ene|Abr|Ago|Dic|Fev|Out|Set|January|February|March|April|June|July|August|September|October|November|December|Januar|Februar|März|Juni|Juli|Oktober|Dezember'
const SMALL_LETTERS =
  'janv|févr|mars|avr|mai|juin|juil|août|sept|oct|nov|déc|ene|feb|mar|abr|may|jun|jul|ago|sep|dic|gen|apr|mag|giu|lug|set|ott|jan|fev|out|dez|mrt|mei|aug|okt|dec|maj|des|sty|lut|kwi|cze|lip|sie|wrz|paź|lis|gru'
const MONTH = `(?:${CAPITALISED}|${SMALL_LETTERS})\\.?`
const MONTH_FIRST = new RegExp(`^${MONTH}[-/. ] ?(?:\\d{1,2},? )?(?:\\d{4}|\\d{2})${TIME}$`)
const DAY_MONTH_NAME = new RegExp(`^\\d{1,2}[-/. ] ?${MONTH}(?:[-/. ] ?(?:\\d{4}|\\d{2})${TIME})?$`)

const BOOLEANS = new Set([
  ...['true', 'false', 'wahr', 'falsch', 'vrai', 'faux', 'verdadero', 'falso', 'vero', 'verdadeiro', 'waar', 'onwaar'],
  ...['prawda', 'fałsz', 'sant', 'falskt', 'sand', 'falsk', 'sann', 'usann', 'tosi', 'epätosi', 'doğru', 'yanlış'],
  ...['pravda', 'nepravda', 'igaz', 'hamis', 'истина', 'ложь'],
])
const NOTHING = new Set([
  ...['null', '(null)', '<null>', '[null]', 'nil', 'none', '(none)', '<none>', 'nan', '<na>', 'na', 'n/a', 'n.a.'],
  ...['n/a.', 'n/d', 'n.d.', 'k.a.', 'k. a.', 's/o', 'undefined', '(blank)', '(empty)', '(leer)', 'empty', 'blank'],
  ...['not available', 'not applicable', '\\n', '-', '--', '---', '–', '—', '.', '..', '...', '?', '*', '/', '_'],
])
