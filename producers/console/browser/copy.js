// Adds a button that copies, beside every id. Pages are read without it, and the id can be selected by hand: its whole text is
// its title where it is shortened.

const SAYS_MS = 2_000

const said = document.createElement('p')
said.className = 'copy-said'
said.setAttribute('role', 'status')

if (navigator.clipboard !== undefined) {
  document.body.append(said)
  for (const shown of document.querySelectorAll('code.id')) addButton(shown)
}

function addButton(shown) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'copy'
  button.setAttribute('aria-label', `Copy ${wholeOf(shown)}`)
  button.addEventListener('click', () => copy(button, shown))
  // A link may not hold a button.
  const beside = shown.closest('a') ?? shown
  beside.after(button)
}

async function copy(button, shown) {
  const isCopied = await navigator.clipboard.writeText(wholeOf(shown)).then(
    () => true,
    () => false,
  )
  button.dataset.copied = isCopied ? 'yes' : 'no'
  // An empty region first: the same words twice are told twice.
  said.textContent = ''
  said.textContent = isCopied ? 'Copied' : 'Not copied: the browser refused it'
  setTimeout(() => {
    delete button.dataset.copied
    said.textContent = ''
  }, SAYS_MS)
}

/** The id as it is now: a live page may have changed it. */
function wholeOf(shown) {
  return shown.title || shown.textContent
}
