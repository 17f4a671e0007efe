// Asks for the page of an act until its verdict is there, and shows it then. What stands on the page stays meanwhile, for people
// who listen to it. Without scripts the page asks for itself anew every two seconds.

const ASK_MS = 2_000
/** A page on which only figures change is shown anew this often at most, in ms. */
const AGAIN_MS = 10_000
/** Every page that still waits names this module; a text of a person can't, because its quotes are escaped. */
const WAITS = 'src="/waiting.js"'

const status = document.querySelector('main [role=status]')
const waits = status.textContent
const openedAt = Date.now()
let first

setTimeout(ask, ASK_MS)

async function ask() {
  const answer = await fetch(location.href).catch(() => undefined)
  const text = await answer?.text().catch(() => undefined)
  if (text !== undefined && (!answer.ok || !text.includes(WAITS) || isNew(text))) return location.reload()
  say(text === undefined ? 'The console does not answer. This page goes on asking.' : waits)
  setTimeout(ask, ASK_MS)
}

function isNew(text) {
  first ??= text
  return text !== first && Date.now() - openedAt > AGAIN_MS
}

/** The same words again would be told again. */
function say(words) {
  if (status.textContent !== words) status.textContent = words
}
