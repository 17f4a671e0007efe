// Draws the mark of a state into an open page as the server draws it into a new one (batches/state-mark.ts): glyph, word and colour
// together. `marks.js` is the server's own table. It makes elements and texts, never markup of a text.
import { MARKS, TEXT } from './marks.js'

const SVG = 'http://www.w3.org/2000/svg'

/** Puts the mark of this state into the element, unless it has it. */
export function mark(element, state) {
  if (element.dataset.state === state) return
  const { glyph, tone } = MARKS[state]
  element.dataset.state = state
  const sign = made('span', { class: 'glyph', 'aria-hidden': 'true' })
  sign.append(glyph.d === undefined ? `${glyph}${TEXT}` : drawn(glyph.d))
  const whole = made('span', { class: `state ${tone}` })
  whole.append(sign, state)
  element.replaceChildren(whole)
}

function drawn(d) {
  const svg = made('svg', { viewBox: '0 0 12 12', width: '12', height: '12', focusable: 'false' }, SVG)
  svg.append(made('path', { d, fill: 'currentColor' }, SVG))
  return svg
}

function made(name, attributes, namespace = 'http://www.w3.org/1999/xhtml') {
  const element = document.createElementNS(namespace, name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  return element
}
