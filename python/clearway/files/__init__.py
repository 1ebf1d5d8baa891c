"""Files and folders: written whole, in their places, within the sandbox."""
