// A process for reports that takes its task and then says nothing more.
process.on('message', () => {})
